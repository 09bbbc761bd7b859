"""JOB112: may the key of an attempt whose worker died stay taken for longer than any job may run?"""

from __future__ import annotations

from collections.abc import Iterator

from ...effects.ledger import Ledger
from ...transport.broker import JobBroker
from ..finding import Finding
from ..inspection import Inspection, about


def check_leases(inspection: Inspection, broker: JobBroker | None) -> Iterator[Finding]:
    """Yield loaded actors whose attempts hold their key for too long without a sign of life."""
    ledgers = [each for each in broker.middleware if isinstance(each, Ledger)] if broker is not None else []
    for actor in inspection.actors:
        for ledger in ledgers:
            problem = ledger.lease_problem(broker, actor.name) if broker and actor.loaded is not None else ""
            if problem:
                why = problem.partition(": ")[2]
                fix = "lower JOBS_EFFECT_LEASE, or raise the time limit of its queue"
                yield about(actor, "JOB112", why, fix, "effect")
