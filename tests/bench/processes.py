"""How does a contestant run? In a process of its own, which has nothing that another one warmed up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

GIVE_UP_SECONDS: Final = 300.0
_INTERVAL_SECONDS: Final = 0.1
_END_SECONDS: Final = 60.0
_pause: Final = threading.Event()


def settings(broker_url: str, database_url: str, **more: str) -> dict[str, str]:
    """Return a contestant's environment, without settings of the application that the caller has.

    Parameters:
        broker_url: of the virtual host.
        database_url: of an SQLite file, or of a database.
        more: further variables.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("JOBS_")}
    return {
        **own,
        "JOBS_BROKER_URL": broker_url,
        "JOBS_DATABASE_URL": database_url,
        "JOBS_ENV_FILE": "",
        **more,
    }


def migrate(environment: Mapping[str, str]) -> None:
    """Create the tables, without which a worker of the kit does not start."""
    command = [sys.executable, "-m", "middleware.cli", "migrate"]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def figure(module: str, *arguments: object, environment: Mapping[str, str]) -> float:
    """Run a program to its end and return the number that its output ends with.

    Raises:
        RuntimeError: it failed; the text ends with its last words.
        subprocess.TimeoutExpired: it did not end.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{module} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


@contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker or a server, and end it with SIGTERM, after 60 s with SIGKILL.

    Parameters:
        command: what runs.
        environment: see `settings`.
        log: where its output is added.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def booted(log: Path) -> bool | None:
    """Return whether a `dramatiq` command has booted: stopped before, it would leave its worker behind."""
    return "Worker process is ready for action" in log.read_text(errors="replace") or None


def wait_for(
    fact: Callable[[], T | None],
    what: str,
    process: subprocess.Popen[bytes] | None = None,
    log: Path | None = None,
) -> T:
    """Poll until a fact is there, and return it.

    Parameters:
        fact: asked again and again; None means not yet.
        what: names the fact in the error.
        process: if it ends, waiting is in vain.
        log: its output, for the error.

    Raises:
        RuntimeError: not within five minutes, or the process ended.
    """
    give_up = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < give_up:
        found = fact()
        if found is not None:
            return found
        if process is not None and process.poll() is not None:
            break
        _pause.wait(_INTERVAL_SECONDS)
    words = "" if log is None else f": {log.read_text(errors='replace')[-2000:]}"
    raise RuntimeError(f"expected {what}, got: nothing in time, or its process ended{words}")
