"""How does a test learn what its actors did in other threads?"""

from __future__ import annotations

import threading
from typing import Any

from .waiting import wait_until


class Journal:
    """What happened, in order; any thread may add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Any] = []

    def note(self, entry: Any) -> None:
        """Add an entry."""
        with self._lock:
            self._entries.append(entry)

    @property
    def entries(self) -> list[Any]:
        """Everything noted so far."""
        with self._lock:
            return list(self._entries)

    def wait_for(self, count: int, seconds: float = 20.0) -> list[Any]:
        """Wait until there are at least so many entries, and return all."""
        wait_until(lambda: len(self.entries) >= count, what=f"{count} entries", seconds=seconds)
        return self.entries


class Gate:
    """Holds jobs until the test opens it, in steps short enough for an interrupt to come through."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    def open(self) -> None:
        """Let everybody pass, now and later."""
        self._opened.set()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until it is open; fails after a while, so that no thread outlives its test."""
        for _ in range(int(seconds / 0.02)):
            if self._opened.wait(0.02):
                return
        raise AssertionError(f"expected the gate to open within {seconds:g} s")
