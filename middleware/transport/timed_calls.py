"""What is to be done after a while by whoever has the publisher's turn then?

Calls outlive connections, so they are no timers of a connection's loop.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_NEVER: Final = float("inf")


class TimedCalls:
    """Callables, each with the moment of the monotonic clock at which it is due."""

    def __init__(self) -> None:
        self._new: deque[tuple[float, Callable[[], None]]] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._next_due = _NEVER

    # --- any thread ---

    def add(self, due: float, call: Callable[[], None]) -> None:
        """Take in a callable."""
        self._new.append((due, call))

    @property
    def has_new(self) -> bool:
        """Whether one came in that `run_due` has not seen."""
        return bool(self._new)

    @property
    def seconds_left(self) -> float:
        """How long until the next one is due, without those that `run_due` has not seen."""
        return max(0.0, self._next_due - time.monotonic())

    # --- the thread that has the turn ---

    def run_due(self) -> None:
        """Run those whose time has come."""
        while self._new:
            due, call = self._new.popleft()
            heapq.heappush(self._later, (due, next(self._numbers), call))
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()
        self._next_due = self._later[0][0] if self._later else _NEVER
