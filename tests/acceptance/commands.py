"""How does a test type a command, and what does it get back?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .surroundings import surroundings
from .workers import ROOT

_SECONDS: Final = 100


def run(*words: str, settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a module with this interpreter; it is told `settings` and nothing of the developer's own."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=surroundings(**{"COLUMNS": "120", **settings}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )


def jobsctl(*words: str, settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `jobsctl`."""
    return run("middleware.cli", *words, settings=settings)


def succeed(*words: str, settings: Mapping[str, str]) -> str:
    """Run `jobsctl`, check that it succeeds, and return what it prints."""
    done = jobsctl(*words, settings=settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fail(code: int, *words: str, settings: Mapping[str, str]) -> str:
    """Run `jobsctl`, check that it ends with that code and without a traceback, and return its error text."""
    done = jobsctl(*words, settings=settings)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stderr


def embedded(folder: Path) -> dict[str, str]:
    """Return settings for the inline broker and an SQLite file in `folder`."""
    return {"JOBS_BROKER_URL": "inline://", "JOBS_DATABASE_URL": f"sqlite:///{folder}/jobs.sqlite3"}
