"""How does the ledger speak to SQLite? With one writer at a time, so a twin never runs at the same time."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..store.sqlite import BUSY_MS, FAILED, has_failed, is_busy, mark_failed
from .databases import KeyBusy, TransactionAborted, TransactionEnded
from .entry import Entry, Limits

_INSERT: Final = (
    "INSERT INTO job_ledger (key, args_hash, actor, message_id) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
# A savepoint marks the transaction: it is gone if somebody ended that and began another.
_MARK: Final = "SAVEPOINT jobs_ledger"
_COMMIT: Final = "RELEASE jobs_ledger"
_ENDED: Final = "no such savepoint: jobs_ledger"


class SQLite:
    """The ledger's statements for SQLite 3.35 and later; see `Database`."""

    def open(self, connection: Connection, entry: Entry, limits: Limits) -> str | None:
        """Take the writer's lock, then insert."""
        cursor: Any = connection.connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout = {limits.wait_ms}")  # other processes
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute(_INSERT, entry)
            if not cursor.fetchall():
                return None
            cursor.execute(_MARK)
        except sqlite3.Error as error:
            if is_busy(error):
                raise KeyBusy from error
            raise _wrapped(connection, error) from error
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            cursor.close()
        return _COMMIT

    def join(self, connection: Connection, entry: Entry, limits: Limits) -> bool:
        """Insert within the open transaction."""
        return bool(_rows(connection, _INSERT, entry))

    def held_hash(self, connection: Connection, key: str) -> bytes | None:
        """Look up."""
        rows = _rows(connection, "SELECT args_hash FROM job_ledger WHERE key = ?", (key,))
        return bytes(rows[0][0]) if rows else None

    def mark_failed(self, connection: Connection) -> None:
        """Hold SQLite to PostgreSQL's rule."""
        mark_failed(connection.connection)

    def is_aborted(self, connection: Connection) -> bool:
        """Look for the mark."""
        return has_failed(connection.connection)

    def explain(self, error: DBAPIError) -> Exception:
        """Read the text of the checks in the guarded commit."""
        text = str(error.orig)
        if text == FAILED:
            return TransactionAborted()
        return TransactionEnded() if text == _ENDED else error


def _rows(connection: Connection, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
    cursor: Any = connection.connection.cursor()
    try:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
    except sqlite3.Error as error:
        raise _wrapped(connection, error) from error
    finally:
        cursor.close()


def _wrapped(connection: Connection, error: sqlite3.Error) -> BaseException:
    return DBAPIError.instance(
        "INSERT INTO job_ledger", None, error, sqlite3.Error, dialect=connection.dialect
    )
