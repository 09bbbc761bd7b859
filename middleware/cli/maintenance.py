"""`jobsctl maintenance`: is somebody doing what has to be done for all processes?"""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType

import typer

from ..effects.ledger import Ledger
from ..effects.maintenance import Maintenance
from ..effects.presence import last_seen
from ..effects.pruning_duty import pruning
from .application import load_application
from .problems import BadInput


def maintenance() -> None:
    """Publish what was committed and could not be published, and prune; runs until SIGTERM, in any number."""
    application, broker = load_application()
    if broker.is_inline:
        raise BadInput(
            "expected JOBS_BROKER_URL to be amqp://…, got: inline://, where the process that sends jobs does "
            "the maintenance itself; start it, or set the broker"
        )
    ledger = Ledger.of(broker)
    prune = pruning(application.store, ledger.pruner(broker), ledger.retention.every)
    last_seen(application.store)  # a database that is not there, or has no tables, is told at once
    logging.getLogger().setLevel(logging.INFO)
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        # On a thread of its own: a handler that interrupts a wait must not take the same lock.
        threading.Thread(target=stop.set).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    typer.echo("maintenance: running")
    Maintenance(application.store, broker, [prune]).run(stop)
    broker.close()
    application.store.dispose()
    typer.echo("maintenance: ended")
