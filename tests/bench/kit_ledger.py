"""A worker of the kit with a charge in a transaction, once with the ledger and once without."""

from __future__ import annotations

import dramatiq
from sqlalchemy.orm import Session

from jobs import store
from jobs.credit import charge
from middleware import current_session
from tests.bench.pace import paced


@dramatiq.actor(
    queue_name="critical", actor_name="with_ledger", idempotency_key="bench:{task_id}:{message_id}"
)
def with_ledger(task_id: str, message_id: str) -> None:
    """Charge in the transaction that holds the ledger row; the kit commits."""
    charge(current_session().connection(), task_id, message_id)


@dramatiq.actor(queue_name="critical", actor_name="without_ledger")
def without_ledger(task_id: str, message_id: str) -> None:
    """Charge in a transaction of its own."""
    with Session(store.engine) as session, session.begin():
        charge(session.connection(), task_id, message_id)


paced(with_ledger, without_ledger)
