"""Who runs the jobs of a test? The inline broker by itself; for RabbitMQ a worker is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from dramatiq import Worker

from ..effects.ledger import Ledger
from ..transport.broker import JobBroker
from ..transport.inline import InlineBroker

THREADS: Final = 4
_POLL_MS: Final = 20
_END: Final = timedelta(seconds=10)


def ledger_of(broker: JobBroker) -> Ledger | None:
    """Return the ledger of a broker, None if it has none."""
    return next((each for each in broker.middleware if isinstance(each, Ledger)), None)


@contextmanager
def running_worker(broker: JobBroker, queues: set[str] | None = None) -> Iterator[None]:
    """Run jobs while the block runs.

    Parameters:
        broker: of either kind.
        queues: whose jobs. Defaults to all of the broker's.
    """
    if isinstance(broker, InlineBroker):
        yield
        return
    broker.emit_after("process_boot")
    worker = Worker(broker, queues=queues, worker_threads=THREADS, worker_timeout=_POLL_MS)
    worker.start()
    try:
        yield
    finally:
        worker.stop(timeout=int(_END / timedelta(milliseconds=1)))
