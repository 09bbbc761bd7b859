"""When is a signal meant, and when is it the echo of the one before?"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FrameType
from typing import Final

ECHO_SECONDS: Final = 2.0


class FirstSignal:
    """A handler that lets the first signal through, and others when some time has passed.

    A shell's `kill %1`, systemd and a container's init signal the whole group: a worker process hears it from
    them and then from Dramatiq's master, and would take the second for "at once".

    Parameters:
        handler: what hears the signals that are meant.
        was_heard: whether the first signal has come already. Defaults to False.
        clock: in seconds. Defaults to the monotonic one.
    """

    def __init__(
        self,
        handler: Callable[[int, FrameType | None], object],
        *,
        was_heard: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._first = clock() if was_heard else None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on, unless it is an echo."""
        now = self._clock()
        if self._first is None:
            self._first = now
        elif now - self._first < ECHO_SECONDS:
            return
        self._handler(number, frame)

    def await_echo(self) -> None:
        """Expect the echo of a signal from now on: a worker's master holds it back until the worker is up."""
        if self._first is not None:
            self._first = self._clock()
