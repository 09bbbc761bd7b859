"""What every test starts from: an environment without the developer's own settings, and this machine only."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from deploy.services.errors import CannotServe
from deploy.services.loopback import given

# Before any test module is imported: the application reads its settings when it is imported.
for name in [name for name in os.environ if name.startswith("JOBS_") and not name.startswith("JOBS_TEST_")]:
    del os.environ[name]
os.environ["JOBS_ENV_FILE"] = ""  # no .env is read

pytest_plugins = ["tests.fixtures_broker", "tests.fixtures_database"]


def pytest_configure() -> None:
    """Refuse services of another machine: tests create, flood and delete."""
    try:
        given(os.environ)
    except CannotServe as problem:
        raise pytest.UsageError(str(problem)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what restarts or alarms the services, unless `make` started them for this run."""
    if os.environ.get("JOBS_TEST_OWNED") == "1":
        return
    skip = pytest.mark.skip(reason="needs services that `make` started for this run: `make test`")
    for item in items:
        if item.get_closest_marker("owned_services"):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape what cannot be encoded in captured output, or a report could not leave its process."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report
