"""How do tests build the kit's brokers and run its workers inside their own process?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from dramatiq import Worker
from dramatiq.middleware import AgeLimit, Callbacks, CurrentMessage, Middleware, Pipelines

from middleware import AsyncIO, Failures, InlineBroker, Queue, QuorumBroker, Shutdown, TimeLimits
from middleware.transport.broker import JobBroker

QUEUE: Final = "jobs"
SHORT_LADDER: Final = timedelta(seconds=25)
"""Nine levels: declared in a third of the time of the 26 levels that hold 30 days."""
SHORTER_LADDER: Final = timedelta(seconds=3)
"""Six levels, for tests that wait for what is delayed."""
GRACE: Final = timedelta(seconds=5)
_POLL_MS: Final = 20  # how long the end of a worker takes at least


def build_middleware(*, max_retries: int = 3, grace: timedelta = GRACE) -> list[Middleware]:
    """Return the application's order of middleware, without the ledger, with backoffs of 100 ms."""
    backoff = timedelta(milliseconds=100)
    return [
        AgeLimit(),
        CurrentMessage(),
        TimeLimits(),
        Callbacks(),
        Pipelines(),
        AsyncIO(),
        Failures(max_retries=max_retries, min_backoff=backoff, max_backoff=backoff),
        Shutdown(grace=grace),
    ]


def build_quorum_broker(
    url: str,
    *,
    queues: Iterable[Queue] | None = None,
    middleware: list[Middleware] | None = None,
    **options: Any,
) -> QuorumBroker:
    """Return a broker with a queue named `jobs`, a short ladder and a short publish timeout."""
    options.setdefault("max_delay", SHORT_LADDER)
    options.setdefault("publish_timeout", timedelta(seconds=5))
    options.setdefault("grace", GRACE)
    return QuorumBroker(
        url,
        queues=[Queue(name=QUEUE)] if queues is None else queues,
        middleware=build_middleware() if middleware is None else middleware,
        **options,
    )


def build_inline_broker(
    *, queues: Iterable[Queue] | None = None, middleware: list[Middleware] | None = None, **options: Any
) -> InlineBroker:
    """Return a broker with a queue named `jobs`."""
    options.setdefault("max_delay", SHORT_LADDER)
    options.setdefault("grace", GRACE)
    options.setdefault("threads", 4)
    return InlineBroker(
        queues=[Queue(name=QUEUE)] if queues is None else queues,
        middleware=build_middleware() if middleware is None else middleware,
        **options,
    )


def start_worker(broker: JobBroker, *, threads: int = 4, queues: set[str] | None = None) -> Worker:
    """Start a worker as the `dramatiq` command does."""
    broker.emit_after("process_boot")
    worker = Worker(broker, queues=queues, worker_threads=threads, worker_timeout=_POLL_MS)
    worker.start()
    return worker


def stop_worker(worker: Worker) -> None:
    """Stop a worker and wait for its threads; stopping it twice does nothing."""
    if worker.workers:
        worker.stop(timeout=int((GRACE + timedelta(seconds=5)) / timedelta(milliseconds=1)))
        alive = [thread.name for thread in (*worker.workers, *worker.consumers.values()) if thread.is_alive()]
        assert not alive, f"expected the worker's threads to have ended, got: {alive}"
        worker.workers.clear()
