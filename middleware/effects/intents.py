"""Which attempts at an effect outside the database were made, and may another one be made?

An attempt is a row that is committed before the call: no transaction takes the call back. Its number is the
fencing token: whoever was overtaken by a newer attempt finds that out in the statement that asks.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, exists, func, select, tuple_, update
from sqlalchemy.exc import DBAPIError

from ..store import Clock, Store, insert_into, job_intents, job_ledger
from .entry import Entry
from .recovery import Prove, conflict, is_spent_there

HELD: Final = "held"
RELEASED: Final = "released"
UNKNOWN: Final = "unknown"
CONFIRMED: Final = "confirmed"

_I: Final = job_intents.c
_LONGEST_REASON: Final = 500
R = TypeVar("R")
Token: TypeAlias = tuple[str, int]
"""Key and fence: names an attempt."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The attempt is this job's."""

    fence: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The effect has taken place."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Another worker makes an attempt now.

    Attributes:
        left: how long its lease has to live.
        age: how long ago the attempt began.
    """

    left: timedelta
    age: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Open:
    """An earlier attempt was not confirmed, and nobody makes it any more: whether it took effect is unknown.

    Attributes:
        fence: its number.
        story: one line about it, for people.
    """

    fence: int
    story: str


class Intents:
    """The attempts in one database.

    Parameters:
        store: the database.
        lease: how long an attempt belongs to its holder without a sign of life.
    """

    def __init__(self, store: Store, lease: timedelta) -> None:
        self.store = store
        self.lease = lease

    def take(self, entry: Entry, *, is_careful: bool, prove: Prove) -> Taken | Spent | Busy | Open:
        """Begin an attempt, if none is under way or unsettled.

        Parameters:
            entry: the job's row.
            is_careful: whether its actor is known to ask for its key before its call, so that an attempt that
                did not come to ask did nothing.
            prove: asked before the first attempt of a job.

        Raises:
            Unprovable: the effect may have taken place so long ago that the row is pruned.
            KeyConflict: the key belongs to a job with other arguments.
            sqlalchemy.exc.DBAPIError: the database does not answer.
        """
        return self._write(lambda connection: self._take(connection, entry, is_careful, prove))

    def _take(
        self, connection: Connection, entry: Entry, is_careful: bool, prove: Prove
    ) -> Taken | Spent | Busy | Open:
        attempts = _attempts(connection, entry.key)
        if is_spent_there(connection, entry):  # after the rows: their lock has waited for a confirmation
            return Spent()
        if not attempts:
            prove(lambda: connection, entry)
            return self._insert(connection, entry, 1)
        last = attempts[-1]
        if last.state != RELEASED and bytes(last.args_hash) != entry.args_hash:
            raise conflict(entry)
        if last.state == HELD and last.left > 0:
            return Busy(timedelta(seconds=float(last.left)), timedelta(seconds=float(last.age)))
        confirmed = [each for each in attempts if each.state == CONFIRMED]
        if confirmed:
            _adopt(connection, confirmed[-1])
            return Spent()
        if last.state == HELD and is_careful and last.asked_at is None:
            _end(
                connection, (entry.key, last.fence), RELEASED, "its worker ended before it asked for its key"
            )
        elif last.state != RELEASED:
            if last.state == HELD:
                _end(connection, (entry.key, last.fence), UNKNOWN, "its worker gave no sign of life")
            return Open(last.fence, _story(last))
        if not any(each.message_id == entry.message_id for each in attempts):
            prove(lambda: connection, entry)  # not with attempts of its own: a key's are kept all, or none
        return self._insert(connection, entry, last.fence + 1)

    def _insert(self, connection: Connection, entry: Entry, fence: int) -> Taken | Busy:
        row = {
            **entry._asdict(),
            "fence": fence,
            "state": HELD,
            "holder": f"{socket.gethostname()}:{os.getpid()}",
            "began_at": Clock(),
            "lease_until": self._lease_end(),
        }
        taken = insert_into(connection, job_intents).values(row).on_conflict_do_nothing().returning(_I.fence)
        is_ours = connection.execute(taken).scalar() is not None
        return Taken(fence) if is_ours else Busy(timedelta(0))  # a twin was faster by a moment

    def ask(self, token: Token) -> bool:
        """Note that the call is about to begin; False if the attempt may not make it any more."""
        earlier = job_intents.alias()
        is_done = exists().where(earlier.c.key == token[0], earlier.c.state == CONFIRMED)
        asked = (
            update(job_intents)
            .where(_is(token), _I.state == HELD, _I.lease_until > Clock(), ~is_done)
            .values(asked_at=Clock(), lease_until=self._lease_end())
        )
        return self._write(lambda connection: connection.execute(asked).rowcount == 1)

    def renew(self, tokens: Collection[Token]) -> None:
        """Give the leases of attempts that are under way their full length again."""
        held = update(job_intents).where(tuple_(_I.key, _I.fence).in_(tokens), _I.state == HELD)
        self._write(lambda connection: connection.execute(held.values(lease_until=self._lease_end())))

    def release(self, token: Token, reason: str) -> None:
        """Note that an attempt did nothing: the next one may begin."""
        self._write(lambda connection: _end(connection, token, RELEASED, reason))

    def give_up(self, token: Token, reason: str) -> None:
        """Note that nobody knows whether an attempt took effect."""
        self._write(lambda connection: _end(connection, token, UNKNOWN, reason))

    def confirm_late(self, token: Token, result: str | None) -> None:
        """Note that an attempt took effect that was overtaken; no newer one's row is changed."""
        self._write(lambda connection: _confirm(connection, token, result))

    def _lease_end(self) -> Clock:
        return Clock(self.lease.total_seconds())

    def _write(self, work: Callable[[Connection], R]) -> R:
        """Do something in a transaction of its own; a dead connection of the pool costs no attempt."""
        is_done = False
        try:
            with self.store.writing() as connection:
                result = work(connection)
                is_done = True
            return result
        except DBAPIError as error:
            if is_done or not error.connection_invalidated:
                raise
        with self.store.writing() as connection:  # SQLAlchemy has discarded all that were as old
            return work(connection)


def confirm(connection: Connection, token: Token, result: str | None, *, is_careful: bool) -> bool:
    """Confirm an attempt in the transaction that has inserted its key.

    Parameters:
        connection: in that transaction.
        token: the attempt.
        result: what to keep, JSON.
        is_careful: see `Intents.take`.

    Returns:
        False if a newer attempt is under way that may have made its call: it must not be overtaken.
    """
    last = _attempts(connection, token[0])[-1]
    if last.fence != token[1] and last.state == HELD:
        if last.asked_at is not None or not is_careful:
            return False
        _end(
            connection, (token[0], last.fence), RELEASED, f"attempt {token[1]} was confirmed before its call"
        )
    _confirm(connection, token, result)
    return True


def _attempts(connection: Connection, key: str) -> list[Any]:
    """Return a key's attempts, oldest first, locked until the transaction ends."""
    left = _seconds(connection, _I.lease_until, Clock()).label("left")
    age = _seconds(connection, Clock(), _I.began_at).label("age")
    query = select(job_intents, left, age).where(_I.key == key).order_by(_I.fence).with_for_update()
    return list(connection.execute(query).all())


def _seconds(connection: Connection, end: Any, begin: Any) -> ColumnElement[Any]:
    if connection.dialect.name == "sqlite":
        return (func.julianday(end) - func.julianday(begin)) * 86400.0
    return func.extract("epoch", end - begin)


def _end(connection: Connection, token: Token, state: str, reason: str) -> None:
    """End an attempt that is not confirmed; one that is stays so."""
    ended = update(job_intents).where(_is(token), _I.state.in_((HELD, UNKNOWN)))
    connection.execute(ended.values(state=state, ended_at=Clock(), reason=reason[:_LONGEST_REASON]))


def _confirm(connection: Connection, token: Token, result: str | None) -> None:
    confirmed = update(job_intents).where(_is(token))
    connection.execute(confirmed.values(state=CONFIRMED, ended_at=Clock(), result=result, reason=None))


def _adopt(connection: Connection, attempt: Any) -> None:
    """Spend the key of an attempt whose confirmation came too late to do so itself."""
    row = {name: getattr(attempt, name) for name in Entry._fields}
    connection.execute(insert_into(connection, job_ledger).values(row).on_conflict_do_nothing())


def _is(token: Token) -> ColumnElement[bool]:
    return and_(_I.key == token[0], _I.fence == token[1])


def _story(attempt: Any) -> str:
    asked = "never" if attempt.asked_at is None else f"at {attempt.asked_at:%Y-%m-%d %H:%M:%S}"
    why = f", then: {attempt.reason}" if attempt.state == UNKNOWN and attempt.reason else ""
    return f"attempt {attempt.fence} by {attempt.holder}, which asked for its key {asked}{why}"
