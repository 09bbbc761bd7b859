"""Does nothing stay behind of the services of one run, whatever ends it?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.services.state import State

pytestmark = [pytest.mark.owned_services, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent.parent
WAIT = "print('running', flush=True); input()"


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder for instances that the services' own users can pass through, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def start(home: Path, code: str) -> subprocess.Popen[str]:
    """Run Python code with services of its own."""
    command = [sys.executable, "-m", "deploy.services", "--home", str(home), "--instance", "stay", "run"]
    return subprocess.Popen(
        [*command, sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def left(home: Path) -> list[str]:
    """What is there of an instance, but for the logs of a run that failed."""
    return [path.name for path in home.iterdir() if path.suffix != ".logs"]


def test_exit_code_is_kept(home: Path) -> None:
    """A command that fails passes its exit code on, and the services are gone."""
    run = start(home, "raise SystemExit(7)")
    run.communicate()
    assert run.returncode == 7
    assert left(home) == []


def remembered(home: Path) -> State:
    """The state of the one instance below."""
    (file,) = home.glob("*/state.json")
    state = State.load(file)
    assert state is not None
    assert state.engine == "docker" or len(state.processes) == 3
    return state


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_nothing(home: Path, number: signal.Signals) -> None:
    """Ctrl-C, a termination and a closed terminal end the command, then its services; the exit code tells."""
    run = start(home, WAIT)
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"
    state = remembered(home)
    os.killpg(run.pid, number)  # as a terminal does: to the run and to its command
    run.communicate()
    assert run.returncode == 128 + number
    assert left(home) == []
    assert not any(process.is_alive() for process in state.processes.values())


def test_killed_run_is_cleaned_up_by_the_next(home: Path) -> None:
    """After SIGKILL the services go on; the next run ends them before it starts its own."""
    killed = start(home, WAIT)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "running\n"
    state = remembered(home)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert all(process.is_alive() for process in state.processes.values())
    following = start(home, "")
    following.communicate()
    assert following.returncode == 0
    assert left(home) == []
    assert not any(process.is_alive() for process in state.processes.values())
