"""What if a consumer or worker thread dies? The process ends: never alive but consuming nothing."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Final, NoReturn

from dramatiq import Worker, get_logger
from dramatiq.asyncio import get_event_loop_thread

EXIT_SOFTWARE: Final = 70
"""A thread died (sysexits: EX_SOFTWARE)."""
EXIT_CONFIGURATION: Final = 78
"""The broker or a setting contradicts the declarations (sysexits: EX_CONFIG)."""
EXIT_CONNECTION: Final = 3
"""No broker answered at start: Dramatiq's own code for it."""

_INTERVAL_SECONDS: Final = 1.0


def end_process(code: int, text: str) -> NoReturn:
    """End this process at once; the broker delivers again what it held.

    Parameters:
        code: exit code of the process.
        text: one line for the log.
    """
    get_logger(__name__).critical("Ending the process: %s", text)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)


def watch_threads(worker: Worker) -> threading.Event:
    """Watch a worker's threads from a thread of its own.

    Returns:
        An event that ends the watching: at shutdown threads may end.
    """
    stopping = threading.Event()
    threading.Thread(target=_watch, args=(worker, stopping), name="jobs-liveness", daemon=True).start()
    return stopping


def _watch(worker: Worker, stopping: threading.Event) -> None:
    while not stopping.wait(_INTERVAL_SECONDS):
        threads = (*worker.workers, *list(worker.consumers.values()))
        loop = get_event_loop_thread()
        threads = threads if loop is None else (*threads, loop)
        dead = [thread.name for thread in threads if not thread.is_alive()]
        if dead and not stopping.is_set():
            names = ", ".join(dead)
            end_process(EXIT_SOFTWARE, f"expected all worker and consumer threads to live, got dead: {names}")
