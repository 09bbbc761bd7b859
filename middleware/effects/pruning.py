"""How does the ledger forget? It says from when on it remembers, waits until all have heard, and deletes.

Any number of pruners may work at the same time, and each may be killed at any moment: whoever comes next
goes on. What has to hold for a deletion is in `watermark.py`, for what is spared in `kept.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Delete, Select, func, select, update

from ..store import Clock, Store, in_utc, insert_into, job_intents, job_ledger, job_watermark
from .intents import CONFIRMED, HELD, RELEASED, UNKNOWN
from .kept import is_kept
from .pieces import delete_found, places, within
from .watermark import MOST_AHEAD

_STEP: Final = timedelta(hours=1)
"""A watermark is not raised again for less: a run that follows one which was cut off need not wait again."""
_LONGEST_REST: Final = 5.0
_LOOK_EVERY: Final = 60.0
_MARK: Final = job_watermark.c


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a run came to.

    Attributes:
        before: keys from before this were forgotten.
        keys: rows of the ledger that were deleted.
        attempts: rows of attempts at external effects.
        is_complete: False if it was told to stop before it was through.
    """

    before: datetime
    keys: int = 0
    attempts: int = 0
    is_complete: bool = False


class Pruner:
    """Forgets keys in one database.

    Parameters:
        store: the database.
        keep: how long keys are remembered.
        wait: between raising the watermark and deleting; see `wait_before_deleting`.
        rest: after each piece, as a multiple of the time that it took: what is left to others. Defaults to 3.
    """

    def __init__(self, store: Store, keep: timedelta, wait: timedelta, *, rest: float = 3.0) -> None:
        self._store = store
        self._keep = keep
        self._wait = wait
        self._rest = rest

    def count(self) -> Pruned:
        """Return what a run would delete now, and delete nothing."""
        with self._store.stateless() as connection:
            before = in_utc(
                connection.execute(select(Clock(-(self._keep + MOST_AHEAD).total_seconds()))).scalar_one()
            )
            forgotten = _old_attempts(job_intents.alias("old"), before)
            keys = _counting(_old_keys(job_ledger.alias("old"), before))
            attempts = _counting(select(job_intents.c.key).where(job_intents.c.key.in_(forgotten)))
            return Pruned(
                before, connection.execute(keys).scalar_one(), connection.execute(attempts).scalar_one()
            )

    def run(self, stop: threading.Event, tell: Callable[[datetime, timedelta], None] | None = None) -> Pruned:
        """Raise the watermark, wait, and delete.

        Parameters:
            stop: ends the run after the piece that is under way.
            tell: called once it is known from before when keys are forgotten, and how long the wait will be.

        Raises:
            sqlalchemy.exc.DBAPIError: the database does not answer; what was deleted stays so.
            TimeoutError: on SQLite, some job holds the turn to write for 30 seconds.
        """
        mark, ripe_at = self._raise()
        pruned = Pruned(mark - MOST_AHEAD)
        left = self._left(ripe_at)
        if tell is not None:
            tell(pruned.before, left)
        while left > timedelta(0):
            if stop.wait(min(left.total_seconds(), _LOOK_EVERY)):
                return pruned
            left = self._left(ripe_at)
        for table, statement in ((job_ledger, _delete_keys), (job_intents, _delete_attempts)):
            for deleted in self._pieces(table, statement, pruned.before, stop):
                if table is job_ledger:
                    pruned = replace(pruned, keys=pruned.keys + deleted)
                else:
                    pruned = replace(pruned, attempts=pruned.attempts + deleted)
        if not stop.is_set():
            self._finish(mark)
            pruned = replace(pruned, is_complete=True)
        return pruned

    def _raise(self) -> tuple[datetime, datetime]:
        """Return the watermark of this run, and when it may delete, by the database's clock."""
        with self._store.stateless() as connection:
            wanted = in_utc(connection.execute(select(Clock(-self._keep.total_seconds()))).scalar_one())
            raised = insert_into(connection, job_watermark).values(id=1, watermark=wanted)
            raised = raised.on_conflict_do_update(
                index_elements=["id"],
                set_={"watermark": wanted, "raised_at": None, "pruned_at": None},
                where=_MARK.watermark < wanted - _STEP,
            )
            connection.execute(raised)
        # A statement after that commit: a moment noted in it would be earlier than others can see it.
        with self._store.stateless() as connection:
            connection.execute(
                update(job_watermark).where(_MARK.raised_at.is_(None)).values(raised_at=Clock())
            )
            row = connection.execute(select(_MARK.watermark, _MARK.raised_at)).one()
        return min(wanted, in_utc(row.watermark)), in_utc(row.raised_at) + self._wait

    def _left(self, ripe_at: datetime) -> timedelta:
        with self._store.stateless() as connection:
            return ripe_at - in_utc(connection.execute(select(Clock())).scalar_one())

    def _pieces(
        self,
        table: Any,
        statement: Callable[[Connection, int, int, datetime], Delete],
        before: datetime,
        stop: threading.Event,
    ) -> Iterator[int]:
        """Delete piece after piece, with rests; yields how many rows each had."""
        with self._store.stateless() as connection:
            first, end, size = places(connection, table)
        for place in range(first, end, size):
            if stop.is_set():
                return
            began = time.monotonic()
            with self._store.stateless() as connection:
                deleted = connection.execute(statement(connection, place, place + size, before)).rowcount
            yield deleted
            stop.wait(min((time.monotonic() - began) * self._rest, _LONGEST_REST))

    def _finish(self, mark: datetime) -> None:
        """Note that all is deleted that may be, unless the watermark was raised meanwhile."""
        with self._store.stateless() as connection:
            finished = update(job_watermark).where(_MARK.watermark <= mark)
            connection.execute(finished.values(pruned_at=Clock()))


def is_due(store: Store, every: timedelta) -> bool:
    """Whether the ledger is to be pruned: never done, the last run is `every` ago, or it was cut off.

    Raises:
        sqlalchemy.exc.DBAPIError: the database does not answer.
    """
    with store.stateless() as connection:
        row = connection.execute(select(_MARK.raised_at, _MARK.pruned_at, Clock().label("now"))).one_or_none()
    if row is None or row.raised_at is None:
        return True
    pause = min(every, _STEP) if row.pruned_at is None else every
    return in_utc(row.now) - in_utc(row.pruned_at or row.raised_at) >= pause


def _old_keys(rows: Any, before: datetime) -> Select[Any]:
    return select(rows.c.key).where(rows.c.created_at < before, ~is_kept(rows.c.key))


def _old_attempts(rows: Any, before: datetime) -> Select[Any]:
    """Find the first attempts of keys all of whose attempts are settled and old.

    By the first, which is there as long as any: whoever has locked it has the key to himself.
    """
    other = job_intents.alias("other")
    is_needed = other.c.state.in_((HELD, UNKNOWN)) | (other.c.ended_at >= before)
    needed = select(other.c.fence).where(other.c.key == rows.c.key, is_needed).exists()
    return select(rows.c.key).where(rows.c.fence == 1, *_settled(rows, before), ~needed)


def _settled(rows: Any, before: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return rows.c.state.in_((CONFIRMED, RELEASED)), rows.c.ended_at < before


def _delete_keys(connection: Connection, first: int, end: int, before: datetime) -> Delete:
    rows = job_ledger.alias("old")
    found = _old_keys(rows, before).where(within(connection, rows, first, end))
    return delete_found(connection, job_ledger, rows, found)


def _delete_attempts(connection: Connection, first: int, end: int, before: datetime) -> Delete:
    rows = job_intents.alias("old")
    found = _old_attempts(rows, before).where(within(connection, rows, first, end))
    every = delete_found(connection, job_intents, rows, found, by="key")
    return every.where(*_settled(job_intents, before))  # asked again of a row that changes meanwhile


def _counting(found: Select[Any]) -> Select[Any]:
    return select(func.count()).select_from(found.subquery())
