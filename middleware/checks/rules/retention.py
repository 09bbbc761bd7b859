"""JOB113: may a job come so late that the ledger has forgotten its key?"""

from __future__ import annotations

from collections.abc import Iterator

from ...effects.ledger import Ledger
from ...effects.retention import WAY_OUT
from ...transport.broker import JobBroker
from ..finding import Finding


def check_retention(broker: JobBroker | None) -> Iterator[Finding]:
    """Yield that keys are remembered for less than a job may be delayed, wait, be retried and replayed."""
    for ledger in broker.middleware if broker is not None else ():
        problem = ledger.retention_problem(broker) if broker and isinstance(ledger, Ledger) else ""
        if problem:
            yield Finding("", 0, "JOB113", problem, WAY_OUT)
