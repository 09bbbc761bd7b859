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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer a choice of tests."""
    parser.addoption("--broker", action="store_true", help="only tests that talk to RabbitMQ")


def pytest_configure() -> None:
    """Refuse services of another machine: tests create, flood and delete."""
    try:
        given(os.environ)
    except CannotServe as problem:
        raise pytest.UsageError(str(problem)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose tests, and skip those that need services which `make` did not start for this run."""
    for item in items:
        # Of four pairs of database and kind of actor, those that run often are the other three; and SQLite is
        # the database of whoever has no server, so beside RabbitMQ it is tried less often.
        parts = _parts(item)
        if "sqlite" in parts and ("async_def" in parts or talks_to_rabbitmq(item)):
            item.add_marker(pytest.mark.slow)
    if config.getoption("--broker"):
        # Left out: ledger, migrations and the inline broker, to which another broker makes no difference.
        config.hook.pytest_deselected(items=[item for item in items if not talks_to_rabbitmq(item)])
        items[:] = [item for item in items if talks_to_rabbitmq(item)]
    if os.environ.get("JOBS_TEST_OWNED") != "1":
        _skip(items, "owned_services", "needs services that `make` started for this run: `make test`")
    if not os.environ.get("JOBS_TEST_RABBITMQ"):
        _skip(items, "rabbitmq4", "needs services that `make test-rabbitmq4` started for this run")


def talks_to_rabbitmq(item: pytest.Item) -> bool:
    """Whether a test has a virtual host of its own, or commands for the services."""
    fixtures = getattr(item, "fixturenames", ())
    case = getattr(item, "callspec", None)
    rig = case.params.get("make_rig") if case is not None else None
    return not {"rabbit", "control"}.isdisjoint(fixtures) or rig == "quorum"


def _parts(item: pytest.Item) -> set[str]:
    """Return what a test is run with: the database, the kind of actor."""
    case = getattr(item, "callspec", None)
    return set(case.id.replace("async def", "async_def").replace("-", "\n").split("\n")) if case else set()


def _skip(items: list[pytest.Item], marker: str, reason: str) -> None:
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape what cannot be encoded in captured output, or a report could not leave its process."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report
