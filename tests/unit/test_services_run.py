"""What does a command get that runs with services?"""

import sys
from pathlib import Path

import pytest

from deploy.services.cli import main, split
from deploy.services.running import scrubbed

PRINT = "import os; print(sorted(name for name in os.environ if name.startswith('JOBS_')))"


def test_the_applications_settings_are_kept_out() -> None:
    """Nothing of JOBS_… but JOBS_TEST_… gets through, and everything else does."""
    given = {"JOBS_BROKER_URL": "a", "JOBS_TEST_BROKER_URL": "b", "PATH": "c"}
    assert scrubbed(given) == {"JOBS_TEST_BROKER_URL": "b", "PATH": "c"}


def test_named_services_are_not_owned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With services that the person named nothing is started, and the command may not restart them."""
    for name, value in {
        "JOBS_TEST_BROKER_URL": "amqp://127.0.0.1",
        "JOBS_TEST_DATABASE_URL": "postgresql://127.0.0.1/d",
        "JOBS_TEST_OWNED": "1",
        "JOBS_TEST_CTL": "x",
        "JOBS_BROKER_URL": "x",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("JOBS_TEST_MANAGEMENT_URL", raising=False)
    command = ["--home", str(tmp_path), "--instance", "unit", "run", sys.executable, "-c", PRINT]
    assert main(command) == 0
    assert capfd.readouterr().out == "['JOBS_TEST_BROKER_URL', 'JOBS_TEST_DATABASE_URL']\n"
    assert list(tmp_path.iterdir()) == []


def test_what_is_passed_on_is_not_looked_at() -> None:
    """Options after `rabbitmqctl` and `run` are the other program's."""
    assert split(["--instance", "test", "rabbitmqctl", "-q", "run"]) == (
        ["--instance", "test", "rabbitmqctl"],
        ["-q", "run"],
    )
    assert split(["stop", "rabbitmq"]) == (["stop", "rabbitmq"], [])
