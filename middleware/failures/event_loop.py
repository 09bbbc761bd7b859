"""Where do async actors run, and how do they end? On the worker's one event loop, in a thread of its own.

An interrupt (time limit, shutdown) reaches the worker's thread, which waits for the coroutine: it cancels the
coroutine and goes on waiting until that has cleaned up, so that no job is settled while it still runs.
"""

from __future__ import annotations

import asyncio
import threading
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


class AsyncIO(StockAsyncIO):
    """Runs async actors, as Dramatiq's middleware of this name does.

    Its thread is a daemon: Dramatiq's keeps a worker alive for ever that is told to stop a second time, which
    is meant to end it at once.

    Parameters:
        cleanup: how long a coroutine may take to clean up after it was cancelled. Defaults to 4 seconds: with
            the grace of 25 seconds it ends within the 30 seconds that Kubernetes grants.
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

    def run_coroutine(self, coro: Awaitable[R]) -> R:
        """Run a coroutine for a worker's thread, which waits for it.

        Raises:
            Interrupt: the thread was interrupted; the coroutine has ended, or did not within `cleanup`.
        """
        ended = threading.Event()

        async def noted() -> R:
            try:
                return await coro
            finally:
                ended.set()

        try:
            return super().run_coroutine(noted())
        except RuntimeError as error:
            # Dramatiq waits one second, and then hides the interrupt in an error of another kind.
            interrupt = error.__cause__
            if not isinstance(interrupt, Interrupt):
                raise
        if not ended.wait(self._cleanup_seconds):
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
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            _, running = await asyncio.wait(tasks, timeout=self._cleanup_seconds)
            if running:
                log.warning("event_loop.tasks_left", tasks=len(running))
        await self.loop.shutdown_asyncgens()
