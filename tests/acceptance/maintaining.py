"""How does a test run `jobsctl maintenance`, look at it from outside and end it?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..waiting import wait_until
from .workers import ROOT

_SECONDS: Final = 30.0


class Maintenance:
    """A maintenance process.

    Parameters:
        environment: all the command is told.
        log: the file that takes its output.
    """

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "middleware.cli", "maintenance"],
                cwd=ROOT,
                env={**environment, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def wait_ready(self) -> Maintenance:
        """Wait until it works."""
        wait_until(
            lambda: "maintenance: running" in self.text(), what="the maintenance to run", seconds=_SECONDS
        )
        return self

    def text(self) -> str:
        """Return what it has printed."""
        return self.log.read_text(errors="replace")

    def terminate(self) -> int:
        """Ask it to stop and return its exit code."""
        self._process.terminate()
        return self._process.wait(timeout=_SECONDS)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()
