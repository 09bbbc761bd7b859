"""Is anybody doing the maintenance? Each process that does says so in the database every few seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from ..logs import first_line, get_logger
from ..store import Clock, Store, in_utc, insert_into, job_maintenance

log = get_logger(__name__)

SAY_EVERY: Final = timedelta(seconds=5)
ABSENT_AFTER: Final = timedelta(seconds=60)
_SECOND: Final = timedelta(seconds=1)
_FORGOTTEN_SECONDS: Final = 24 * 3600.0


def say_present(connection: Connection, process: str) -> None:
    """Say that a process does the maintenance."""
    said = insert_into(connection, job_maintenance).values(
        process=process, started_at=Clock(), seen_at=Clock()
    )
    connection.execute(said.on_conflict_do_update(index_elements=["process"], set_={"seen_at": Clock()}))


def say_gone(connection: Connection, process: str) -> None:
    """Say that a process has ended, and forget those that ended without a word long ago."""
    seen = job_maintenance.c
    is_gone = (seen.process == process) | (seen.seen_at < Clock(-_FORGOTTEN_SECONDS))
    connection.execute(delete(job_maintenance).where(is_gone))


def last_seen(store: Store) -> timedelta | None:
    """Return how long ago a maintenance process was seen last; None if never.

    Raises:
        sqlalchemy.exc.SQLAlchemyError, TimeoutError: the database does not answer.
    """
    with store.stateless() as connection:
        seen, now = connection.execute(select(func.max(job_maintenance.c.seen_at), Clock())).one()
    return None if seen is None else max(timedelta(0), in_utc(now) - in_utc(seen))


def warn_if_absent(store: Store) -> None:
    """Log a warning if no maintenance process was seen for 60 s. Never raises."""
    try:
        ago = last_seen(store)
    except (SQLAlchemyError, TimeoutError) as error:
        log.warning("maintenance.not_known", reason=first_line(error))
        return
    if ago is None or ago > ABSENT_AFTER:
        log.warning(
            "maintenance.absent",
            seen="never" if ago is None else f"{ago // _SECOND} s ago",
            advice="run `jobsctl maintenance`: what a process committed and could not publish waits for it",
        )
