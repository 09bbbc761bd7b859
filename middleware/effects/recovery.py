"""Has a key been spent, and by whom? Asked without a lock: before a long computation, after a lost COMMIT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from ..errors import KeyConflict
from ..store import Store, job_ledger
from .entry import Entry


def spent_by(store: Store, entry: Entry) -> str | None:
    """Look a key up on a fresh connection.

    Returns:
        The id of the message that spent it; None if it is free: nothing was committed.

    Raises:
        sqlalchemy.exc.DBAPIError: the database does not answer.
    """
    query = select(job_ledger.c.message_id).where(job_ledger.c.key == entry.key)
    with store.fresh_engine.connect() as connection:
        found: str | None = connection.execute(query).scalar()
    return found


Prove: TypeAlias = Callable[[Callable[[], Connection], Entry], None]
"""Refuses a job that has no row if it may have had one; see `Terms.prove`."""


def is_spent(store: Store, entry: Entry, prove: Prove) -> bool:
    """Whether a job has been done before; a dead connection of the pool costs no attempt.

    Raises:
        Unprovable: that is not known any more.
        KeyConflict: its key is spent with other arguments.
        sqlalchemy.exc.DBAPIError: the database does not answer.
    """
    try:
        return _look(store, entry, prove)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    return _look(store, entry, prove)  # SQLAlchemy has discarded all connections that were as old


def _look(store: Store, entry: Entry, prove: Prove) -> bool:
    with store.engine.connect() as connection:
        if is_spent_there(connection, entry):
            return True
        prove(lambda: connection, entry)
        return False


def is_spent_there(connection: Connection, entry: Entry) -> bool:
    """Look on a connection; see `is_spent`."""
    query = select(job_ledger.c.args_hash).where(job_ledger.c.key == entry.key)
    held: Any = connection.execute(query).scalar()
    if held is not None and bytes(held) != entry.args_hash:
        raise conflict(entry)
    return held is not None


def conflict(entry: Entry) -> KeyConflict:
    """Return what is wrong with a job whose key another job has spent."""
    return KeyConflict(
        f"expected the arguments that idempotency key {entry.key!r} was spent with, got: others; "
        "name in idempotency_key every argument that tells jobs apart"
    )
