"""How do actors in a worker and the test that watches them talk? Through files, which no SIGKILL takes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from time import sleep, time


@dataclass(frozen=True)
class Event:
    """One step of one probe.

    Attributes:
        what: began, failed, rejected, cancelled or ended.
        name: the probe's.
        attempt: the number of the attempt, from 1.
        pid: the worker process.
        at: unix seconds.
    """

    what: str
    name: str
    attempt: int
    pid: int
    at: float


class Seen:
    """What the probes did, in the order in which they did it.

    Parameters:
        folder: shared by worker and test.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "events.jsonl"
        self._file.touch()

    def note(self, what: str, name: str, attempt: int) -> None:
        """Add an event. One write, appended: lines of several writers do not mix."""
        line = json.dumps([what, name, attempt, os.getpid(), time()]) + "\n"
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def events(self) -> list[Event]:
        """Return everything noted so far."""
        written = self._file.read_text().rpartition("\n")[0]  # what follows is a line half written
        return [Event(*json.loads(line)) for line in written.splitlines()]

    def of(self, what: str, name: str | None = None) -> list[Event]:
        """Return the events of a kind, of one probe or of all."""
        return [event for event in self.events() if event.what == what and name in (None, event.name)]

    def count(self, what: str, name: str) -> int:
        """Return how often that happened."""
        return len(self.of(what, name))


class Gates:
    """Gates that probes wait at until the test opens them.

    Parameters:
        folder: shared by worker and test.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str) -> None:
        """Let everybody pass, now and later."""
        (self._folder / f"{name}.open").touch()

    def is_open(self, name: str) -> bool:
        """Whether everybody may pass."""
        return (self._folder / f"{name}.open").exists()

    def wait(self, name: str) -> None:
        """Wait until it is open, in steps short enough for an interrupt to come through."""
        while not self.is_open(name):
            sleep(0.02)
