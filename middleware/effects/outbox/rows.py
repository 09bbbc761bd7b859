"""What is done to the rows of the outbox after their commit? One statement each, a transaction of its own."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from ...store import Clock, job_outbox
from ...store.tables import CLAIM_SECONDS
from ...transport.ladder import ticks_for
from ...transport.publication import DELAYED, READY, Publication

_CLOCK_SLACK: Final = 0.5
"""Seconds before a claim's end after which nothing is written any more."""
_LONGEST_PAUSE: Final = 60.0
_LONGEST_PROBLEM: Final = 1000
_rows: Final = job_outbox.c
_READ: Final = (
    _rows.id,
    _rows.message_id,
    _rows.queue,
    _rows.actor,
    _rows.body,
    _rows.enqueued_at,
    _rows.due_at,
    _rows.refusals,
)


@dataclass(slots=True)
class Claimed:
    """A committed row that this process alone may publish.

    Attributes:
        until: on this process's monotonic clock, when somebody else may.
    """

    id: UUID
    message_id: str
    queue: str
    actor: str
    body: bytes
    enqueued_at: datetime
    due_at: datetime
    refusals: int
    until: float

    def publication(self) -> Publication:
        """Return what is to be published now: for a delay, what is left of it."""
        left = _utc(self.due_at) - datetime.now(UTC)
        is_due = left <= timedelta(0) or self.due_at <= self.enqueued_at
        return Publication(
            queue=self.queue,
            place=READY if is_due else DELAYED,
            body=self.body,
            message_id=self.message_id,
            actor=self.actor,
            timestamp=int(_utc(self.enqueued_at).timestamp()),
            ticks=0 if is_due else ticks_for(left),
        )


def read_own(connection: Connection, ids: Collection[UUID], owner: str) -> list[Claimed]:
    """Return those of the rows that are committed and were born claimed by `owner`, claimed anew.

    Renewed rather than read: a transaction may have been open for longer than the claim that it wrote.
    """
    is_ours = (_rows.id.in_(ids)) & (_rows.claimed_by == owner)
    return _claimed(connection, is_ours, owner)


def claim_left_over(
    connection: Connection, owner: str, *, most: int, without: Iterable[str]
) -> list[Claimed]:
    """Claim rows whose claim is over, the longest first; any number of processes may do so at once.

    Parameters:
        connection: of the database.
        owner: who claims.
        most: rows at most.
        without: queues whose rows are left alone.
    """
    now = select(Clock()).scalar_subquery()  # asked once, or no index is used
    free = select(_rows.id).where(_rows.claimed_until < now, _rows.queue.not_in(list(without)))
    free = free.order_by(_rows.claimed_until).limit(most).with_for_update(skip_locked=True)
    return _claimed(connection, _rows.id.in_(free.scalar_subquery()), owner)


def renew(connection: Connection, ids: Collection[UUID], owner: str) -> dict[UUID, float]:
    """Prolong claims; return until when, for those that nobody else has taken meanwhile."""
    until = _until()
    renewing = (
        update(job_outbox)
        .where(_rows.id.in_(ids), _rows.claimed_by == owner)
        .values(claimed_until=Clock(CLAIM_SECONDS))
        .returning(_rows.id)
    )
    return dict.fromkeys(connection.execute(renewing).scalars(), until)


def remove(connection: Connection, ids: Collection[UUID]) -> None:
    """Remove rows that the broker has confirmed, whoever claims them by now."""
    connection.execute(delete(job_outbox).where(_rows.id.in_(ids)))


def release(connection: Connection, ids: Collection[UUID], owner: str) -> None:
    """Give up claims, so that somebody else can take the rows at once."""
    connection.execute(
        update(job_outbox).where(_rows.id.in_(ids), _rows.claimed_by == owner).values(claimed_until=Clock())
    )


def postpone(connection: Connection, ids: Collection[UUID], refusals: int, problem: str, owner: str) -> float:
    """Keep rows that could not be published for another try; return in how many seconds.

    Parameters:
        connection: of the database.
        ids: the rows'.
        refusals: how often each of them was refused before.
        problem: why they could not be published.
        owner: whose they are.
    """
    seconds = min(_LONGEST_PAUSE, 2.0 ** min(refusals, 16))
    connection.execute(
        update(job_outbox)
        .where(_rows.id.in_(ids), _rows.claimed_by == owner)
        .values(claimed_until=Clock(seconds), refusals=_rows.refusals + 1, problem=_as_text(problem))
    )
    return seconds


def count(connection: Connection, most: int) -> int:
    """Return how many rows there are, counting no further than `most`."""
    some = select(_rows.id).limit(most).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one()


def _claimed(connection: Connection, which: ColumnElement[bool], owner: str) -> list[Claimed]:
    until = _until()
    claiming = (
        update(job_outbox)
        .where(which)
        .values(claimed_by=owner, claimed_until=Clock(CLAIM_SECONDS))
        .returning(*_READ)
    )
    found: Sequence[Any] = connection.execute(claiming).all()
    return [Claimed(**row._mapping, until=until) for row in found]


def _until() -> float:
    """Asked before the statement that claims, so that it ends here before it ends there."""
    return time.monotonic() + CLAIM_SECONDS - _CLOCK_SLACK


def _as_text(problem: str) -> str:
    """PostgreSQL takes no NUL and no lone surrogate."""
    return problem.replace("\0", "").encode(errors="replace").decode()[:_LONGEST_PROBLEM]


def _utc(moment: datetime) -> datetime:
    """SQLite returns times without their zone."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
