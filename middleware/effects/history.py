"""What do the tables know about an idempotency key: was it spent, and which attempts were made?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from ..store import Store, job_intents, job_ledger
from .clock import clock
from .intents import HELD


@dataclass(frozen=True)
class Commit:
    """The commit that spent the key.

    Attributes:
        actor: who did.
        message_id: of its job.
        at: when.
    """

    actor: str
    message_id: str
    at: datetime


@dataclass(frozen=True)
class Tried:
    """An attempt at an external effect.

    Attributes:
        number: counted from 1, the fencing token.
        state: held, released, unknown or confirmed.
        actor: whose.
        message_id: of its job.
        holder: host and process.
        began_at: when its intent was committed.
        asked_at: when the actor asked for its key, just before its call.
        ended_at: when it was confirmed, released or given up.
        lease_until: until when it belongs to its holder; None for one that has ended.
        is_alive: whether that is not over yet.
        reason: why it was released or given up.
        result: what was kept with its confirmation.
    """

    number: int
    state: str
    actor: str
    message_id: str
    holder: str
    began_at: datetime
    asked_at: datetime | None
    ended_at: datetime | None
    lease_until: datetime | None
    is_alive: bool
    reason: str | None
    result: Any


@dataclass(frozen=True)
class History:
    """All about a key.

    Attributes:
        key: the key.
        commit: None if it is not spent.
        attempts: oldest first; none for effects in the database, which leave no trace but their commit.
    """

    key: str
    commit: Commit | None
    attempts: tuple[Tried, ...]


def history_of(store: Store, key: str) -> History:
    """Look a key up.

    Raises:
        sqlalchemy.exc.DBAPIError: the database does not answer, or lacks a table.
    """
    spent = select(job_ledger).where(job_ledger.c.key == key)
    is_alive = ((job_intents.c.state == HELD) & (job_intents.c.lease_until > clock())).label("is_alive")
    tried = select(job_intents, is_alive).where(job_intents.c.key == key).order_by(job_intents.c.fence)
    with store.engine.connect() as connection:
        row = connection.execute(spent).one_or_none()
        attempts = connection.execute(tried).all()
    commit = None if row is None else Commit(row.actor, row.message_id, _in_utc(row.created_at))
    return History(key, commit, tuple(_attempt(each) for each in attempts))


def _attempt(row: Any) -> Tried:
    return Tried(
        number=row.fence,
        state=row.state,
        actor=row.actor,
        message_id=row.message_id,
        holder=row.holder,
        began_at=_in_utc(row.began_at),
        asked_at=None if row.asked_at is None else _in_utc(row.asked_at),
        ended_at=None if row.ended_at is None else _in_utc(row.ended_at),
        lease_until=_in_utc(row.lease_until) if row.state == HELD else None,
        is_alive=bool(row.is_alive),
        reason=row.reason,
        result=None if row.result is None else json.loads(row.result),
    )


def _in_utc(moment: datetime) -> datetime:
    """Return a moment with its zone, which SQLite does not keep."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
