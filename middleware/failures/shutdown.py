"""What happens to running jobs when the worker is told to stop?

They get the grace to finish; then they are interrupted and returned, which uses no attempt. Consumers
are cancelled before anything else, by the broker's own `drain`: Dramatiq would go on fetching until its
worker threads have stopped.
"""

from __future__ import annotations

import inspect
import signal
import threading
from datetime import timedelta
from typing import Final

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware
from dramatiq.middleware import Shutdown as ShutdownInterrupt

from ..logs import get_logger
from .signals import FirstSignal
from .time_limits import TimeLimits

log = get_logger(__name__)

_STOPPING: Final = (signal.SIGTERM, signal.SIGHUP)
"""What stops a worker process; whoever ends a session may send one after the other."""


class Shutdown(Middleware):
    """Interrupts what still runs after the grace; needs `TimeLimits` in the same list, which knows what runs.

    Parameters:
        grace: how long running jobs may take to finish. Defaults to 25 seconds, below the 30 seconds
            after which Kubernetes kills a container.
    """

    def __init__(self, *, grace: timedelta = timedelta(seconds=25)) -> None:
        self._grace = grace
        self._finished = threading.Event()
        self._signals: FirstSignal | None = None

    def after_process_boot(self, broker: Broker) -> None:
        """Take signals in quick succession for one, from here on: also while the actors are imported."""
        handler = signal.getsignal(signal.SIGTERM)
        # Dramatiq's handler; a process of somebody else's, such as one with the inline broker, keeps its own.
        if callable(handler) and getattr(handler, "__module__", "") == "dramatiq.cli":
            # Until here it heard signals itself. Source: Dramatiq's `worker_process`, 2.2.1.
            runs = inspect.getclosurevars(handler).nonlocals.get("running", True)
            self._signals = FirstSignal(handler, was_heard=not runs)
            for number in _STOPPING:
                signal.signal(number, self._signals)

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Know the master's echo of a signal that came during the start."""
        if self._signals is not None:
            self._signals.await_echo()

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
