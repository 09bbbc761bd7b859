"""Where do async actors run? On the one event loop of the worker, in a thread of its own."""

from __future__ import annotations

from typing import Final

from dramatiq import Broker, Worker
from dramatiq.asyncio import EventLoopThread, set_event_loop_thread
from dramatiq.middleware import AsyncIO as StockAsyncIO

_START_SECONDS: Final = 10.0


class AsyncIO(StockAsyncIO):
    """Runs async actors, as Dramatiq's middleware of this name does.

    Its thread is a daemon: Dramatiq's keeps a worker alive for ever that is told to stop a second time, which
    is meant to end it at once.
    """

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Start the loop before the first job."""
        thread = EventLoopThread(self.logger)
        thread.daemon = True
        thread.start(timeout=_START_SECONDS)
        set_event_loop_thread(thread)
