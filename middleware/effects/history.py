"""What do the tables know about an idempotency key: was it sent, which attempts were made, was it spent?"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from ..store import Clock, Store, in_utc, job_intents, job_ledger, job_outbox, job_watermark
from ..transport.decoding import decode
from .intents import HELD
from .keyed import KeyedActor


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
class Sent:
    """A job with the key that waits in the outbox, for the broker or for its time.

    Attributes:
        actor: whose.
        message_id: of the job.
        enqueued_at: when it was sent.
        due_at: when it is to run.
        problem: why the broker does not have it yet; None if that is not known.
    """

    actor: str
    message_id: str
    enqueued_at: datetime
    due_at: datetime
    problem: str | None


@dataclass(frozen=True)
class History:
    """All about a key.

    Attributes:
        key: the key.
        commit: None if it is not spent.
        attempts: oldest first; none for effects in the database, which leave no trace but their commit.
        sends: what waits in the outbox, oldest first; a job that the broker has is in none of the tables.
        forgotten_before: keys of jobs that were enqueued before may have been spent and be forgotten; None if
            none ever was.
    """

    key: str
    commit: Commit | None
    attempts: tuple[Tried, ...]
    sends: tuple[Sent, ...]
    forgotten_before: datetime | None


def history_of(store: Store, key: str, actors: Collection[KeyedActor]) -> History:
    """Look a key up.

    Parameters:
        store: the database.
        key: as its actor's template renders it.
        actors: the declared actors with a key.

    Raises:
        sqlalchemy.exc.DBAPIError: the database does not answer, or lacks a table.
    """
    spent = select(job_ledger).where(job_ledger.c.key == key)
    is_alive = ((job_intents.c.state == HELD) & (job_intents.c.lease_until > Clock())).label("is_alive")
    made = select(job_intents, is_alive).where(job_intents.c.key == key).order_by(job_intents.c.fence)
    with store.engine.connect() as connection:
        row = connection.execute(spent).one_or_none()
        attempts = connection.execute(made).all()
        sends = tuple(_sends(connection, key, actors))
        watermark = connection.execute(select(job_watermark.c.watermark)).scalar()
    commit = None if row is None else Commit(row.actor, row.message_id, in_utc(row.created_at))
    return History(
        key, commit, tuple(_attempt(each) for each in attempts), sends, watermark and in_utc(watermark)
    )


def _sends(connection: Connection, key: str, actors: Collection[KeyedActor]) -> Iterator[Sent]:
    """Yield what waits in the outbox with the key: a row does not have it, but its message makes it."""
    could = {each.name: each for each in actors if key.startswith(each.template.shape[0])}
    rows = select(job_outbox).where(job_outbox.c.actor.in_(could)).order_by(job_outbox.c.id)
    for row in connection.execute(rows):
        try:
            message = decode(row.body, row.queue)
            entry = could[row.actor].entry(message.args, message.kwargs, message.message_id)
        except ValueError:  # no message, or one of another version of its actor
            continue
        if entry.key == key:
            times = in_utc(row.enqueued_at), in_utc(row.due_at)
            yield Sent(row.actor, row.message_id, *times, row.problem)


def _attempt(row: Any) -> Tried:
    return Tried(
        number=row.fence,
        state=row.state,
        actor=row.actor,
        message_id=row.message_id,
        holder=row.holder,
        began_at=in_utc(row.began_at),
        asked_at=None if row.asked_at is None else in_utc(row.asked_at),
        ended_at=None if row.ended_at is None else in_utc(row.ended_at),
        lease_until=in_utc(row.lease_until) if row.state == HELD else None,
        is_alive=bool(row.is_alive),
        reason=row.reason,
        result=None if row.result is None else json.loads(row.result),
    )
