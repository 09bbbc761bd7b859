"""What happens to running jobs when the worker is told to stop?

They get the grace to finish; then they are interrupted and returned, which uses no attempt. Consumers
are cancelled before anything else, by the broker's own `drain`: Dramatiq would go on fetching until its
worker threads have stopped.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import Final

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware
from dramatiq.middleware import Shutdown as ShutdownInterrupt

from ..logs import get_logger
from .time_limits import TimeLimits

log = get_logger(__name__)

_ECHO_SECONDS: Final = 2.0


class _Once:
    """A signal's handler that lets the first signal through, and others when some time has passed."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self._handler = handler
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
        elif now - self._first < _ECHO_SECONDS:
            return
        self._handler(number, frame)


class Shutdown(Middleware):
    """Interrupts what still runs after the grace; needs `TimeLimits` in the same list, which knows what runs.

    Parameters:
        grace: how long running jobs may take to finish. Defaults to 25 seconds, below the 30 seconds
            after which Kubernetes kills a container.
    """

    def __init__(self, *, grace: timedelta = timedelta(seconds=25)) -> None:
        self._grace = grace
        self._finished = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Take two signals in quick succession for one.

        A shell's `kill %1`, systemd and a container's init signal the whole group: a worker process hears it
        from them and, the same moment, from Dramatiq's master, and would take the second for "at once".
        """
        previous = signal.getsignal(signal.SIGTERM)
        # Dramatiq's handler; a process of somebody else's, such as one with the inline broker, keeps its own.
        if callable(previous) and getattr(previous, "__module__", "") == "dramatiq.cli":
            signal.signal(signal.SIGTERM, _Once(previous))

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Let the grace begin."""
        self._finished.clear()  # a worker that was stopped in this process before
        limits = [middleware for middleware in broker.middleware if isinstance(middleware, TimeLimits)]
        threading.Thread(target=self._interrupt, args=(limits,), name="jobs-shutdown", daemon=True).start()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """All jobs have ended."""
        self._finished.set()

    def _interrupt(self, limits: list[TimeLimits]) -> None:
        if self._finished.wait(self._grace.total_seconds()):
            return
        late = [thread for each in limits for thread in each.interrupts.fire_all(ShutdownInterrupt)]
        log.warning("shutdown.interrupted", jobs=len(late), grace_seconds=self._grace.total_seconds())
