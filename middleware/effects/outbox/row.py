"""What does a transaction write about a job that it enqueues?

An object of SQLAlchemy's unit of work, although the hot path runs no ORM: it is written with the session's
next flush, together with the others, and goes with the savepoint that it was enqueued in; nothing has to be
sent to the database at the moment of the call, in which a coroutine could not wait.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.orm import registry

from ...store import job_outbox
from ...transport.publication import Publication

_MS: Final = timedelta(milliseconds=1)
_registry: Final = registry()


class OutboxRow:
    """A row of `job_outbox`, born claimed by the process that writes it."""

    def __init__(self, publication: Publication, delay_ms: int | None, owner: str) -> None:
        self.id = new_id()
        self.message_id = publication.message_id
        self.queue = publication.queue
        self.actor = publication.actor
        self.body = publication.body
        self.enqueued_at = datetime.fromtimestamp(publication.timestamp, UTC)
        self.due_at = due_at(self.enqueued_at, delay_ms)
        self.claimed_by = owner


def due_at(enqueued_at: datetime, delay_ms: int | None) -> datetime:
    """Return when a job is due; one without a delay at once, also by the clock of a host that is behind."""
    return datetime.now(UTC) + delay_ms * _MS if delay_ms else enqueued_at


_registry.map_imperatively(OutboxRow, job_outbox, eager_defaults=False)


def new_id() -> UUID:
    """Return an id that is greater than older ones, so that new rows lie side by side in the index."""
    return UUID(int=(time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10)))
