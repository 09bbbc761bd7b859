"""Where do async actors run, and how do they end? On the worker's one event loop, in a thread of its own.

An interrupt (time limit, shutdown) reaches the worker's thread, which waits for the coroutine: it cancels the
coroutine and goes on waiting until that has cleaned up, so that no job is settled while it still runs.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable
from datetime import timedelta
from typing import Final, TypeVar

from dramatiq import Broker, Worker
from dramatiq.asyncio import EventLoopThread, get_event_loop_thread, set_event_loop_thread
from dramatiq.middleware import AsyncIO as StockAsyncIO
from dramatiq.middleware import Interrupt

from ..logs import get_logger

log = get_logger(__name__)

R = TypeVar("R")

_START_SECONDS: Final = 10.0
_STOCK_SECONDS: Final = 1.0
"""What Dramatiq waits for a cancelled coroutine. Source: its `EventLoopThread.run_coroutine`, 2.2.1."""


class AsyncIO(StockAsyncIO):
    """Runs async actors, as Dramatiq's middleware of this name does.

    Its thread is a daemon: Dramatiq's keeps a worker alive for ever that is told to stop a second time, which
    is meant to end it at once.

    Parameters:
        cleanup: how long a coroutine may take to clean up after it was cancelled, at least the second that
            Dramatiq itself waits. Defaults to 4 seconds: with a grace of 25 s, a worker whose coroutines
            leave no tasks behind ends within the 30 s that Kubernetes grants.
    """

    def __init__(self, *, cleanup: timedelta = timedelta(seconds=4)) -> None:
        super().__init__()
        self._cleanup = cleanup

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Start the loop before the first job."""
        thread = _Loop(self.logger, self._cleanup)
        thread.daemon = True
        thread.start(timeout=_START_SECONDS)
        set_event_loop_thread(thread)

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Cancel what actors have left running on the loop, let it clean up, and end the loop."""
        thread = get_event_loop_thread()
        if isinstance(thread, _Loop):
            thread.end_tasks()
        super().after_worker_shutdown(broker, worker)  # type: ignore[no-untyped-call]  # stock


class _Loop(EventLoopThread):
    """The thread of the loop.

    Parameters:
        logger: Dramatiq's.
        cleanup: how long a cancelled coroutine may take.
    """

    def __init__(self, logger: object, cleanup: timedelta) -> None:
        super().__init__(logger)
        self._cleanup_seconds = cleanup.total_seconds()
        self._given_up: weakref.WeakSet[asyncio.Task[object]] = weakref.WeakSet()
        """Jobs' tasks that were cancelled and waited for in vain."""

    def run_coroutine(self, coro: Awaitable[R]) -> R:
        """Run a coroutine for a worker's thread, which waits for it.

        Raises:
            Interrupt: the thread was interrupted; the coroutine has ended, or did not within `cleanup`.
        """
        ended = threading.Event()
        tasks: list[asyncio.Task[object] | None] = []

        async def noted() -> R:
            tasks.append(asyncio.current_task())
            try:
                return await coro
            finally:
                ended.set()

        try:
            return super().run_coroutine(noted())
        except RuntimeError as error:
            # Dramatiq waits a second, and then hides the interrupt in an error of another kind.
            interrupt = error.__cause__
            if not isinstance(interrupt, Interrupt):
                raise
        if not ended.wait(max(0.0, self._cleanup_seconds - _STOCK_SECONDS)):
            self._given_up.update(task for task in tasks if task is not None)
            log.warning("job.still_running", reason="its coroutine does not end though it was cancelled")
        raise interrupt

    def end_tasks(self) -> None:
        """Cancel all tasks and wait until they have cleaned up, for `cleanup` at most."""
        if not self.loop.is_running():
            return
        ended = threading.Event()
        asyncio.run_coroutine_threadsafe(self._cancel_tasks(), self.loop).add_done_callback(
            lambda _: ended.set()
        )
        ended.wait(self._cleanup_seconds + 1)

    async def _cancel_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()} - set(self._given_up)
        for task in tasks:
            task.cancel()
        if tasks:
            _, running = await asyncio.wait(tasks, timeout=self._cleanup_seconds)
            if running:
                log.warning("event_loop.tasks_left", tasks=len(running))
        await self.loop.shutdown_asyncgens()
