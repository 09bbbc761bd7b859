"""How does the ledger speak to SQLite? With one writer at a time, so a twin never runs at the same time."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..store.sqlite import is_busy
from .databases import KeyBusy, TransactionEnded
from .entry import Entry, Limits

_INSERT: Final = (
    "INSERT INTO job_ledger (key, args_hash, actor, message_id) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_MARK: Final = "jobs_ledger"
"""A savepoint set at the beginning: it is gone if somebody ended the transaction and began another."""


class SQLite:
    """The ledger's statements for SQLite 3.35 and later; see `Database`."""

    def open(self, connection: Connection, entry: Entry, limits: Limits) -> str | None:
        """Take the writer's lock, then insert; the token is the mark."""
        cursor = _cursor(connection)
        try:
            cursor.execute(f"PRAGMA busy_timeout = {limits.wait_ms}")  # other processes
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute(_INSERT, entry)
            if not cursor.fetchall():
                return None
            cursor.execute(f"SAVEPOINT {_MARK}")
        except sqlite3.Error as error:
            if is_busy(error):
                raise KeyBusy from error
            raise _wrapped(connection, error, "INSERT INTO job_ledger") from error
        finally:
            cursor.close()
        return _MARK

    def join(self, connection: Connection, entry: Entry, limits: Limits) -> bool:
        """Insert within the open transaction."""
        return bool(_rows(connection, _INSERT, entry))

    def held_hash(self, connection: Connection, key: str) -> bytes | None:
        """Look up."""
        rows = _rows(connection, "SELECT args_hash FROM job_ledger WHERE key = ?", (key,))
        return bytes(rows[0][0]) if rows else None

    def is_aborted(self, connection: Connection, failure: DBAPIError | None) -> bool:
        """Hold SQLite to PostgreSQL's rule: it would undo the failed statement alone and commit the rest."""
        return failure is not None

    def commit(self, connection: Connection, token: str) -> None:
        """Look for the mark; SQLAlchemy's own COMMIT follows."""
        try:
            _rows(connection, f"RELEASE {token}")
        except DBAPIError as error:
            if f"no such savepoint: {token}" in str(error.orig):
                raise TransactionEnded from error
            raise


def _cursor(connection: Connection) -> Any:
    """Return a cursor of the `sqlite3` module, or SQLAlchemy's adapter around one of `aiosqlite`."""
    return connection.connection.cursor()


def _rows(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
    cursor = _cursor(connection)
    try:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
    except sqlite3.Error as error:
        raise _wrapped(connection, error, statement) from error
    finally:
        cursor.close()


def _wrapped(connection: Connection, error: sqlite3.Error, label: str) -> DBAPIError:
    wrapped = DBAPIError.instance(label, None, error, sqlite3.Error, dialect=connection.dialect)
    assert isinstance(wrapped, DBAPIError)
    return wrapped
