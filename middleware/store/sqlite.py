"""How is an SQLite file opened, so that it keeps the promises PostgreSQL keeps?"""

from __future__ import annotations

import sqlite3
import threading
from functools import partial
from typing import Any, Final

from .guard import Guard, Record, new_guard

FAILED: Final = "jobs: an SQL error has aborted the transaction"
"""The text of the error that a commit raises after an SQL error that no savepoint has undone."""
BUSY_MS: Final = 5000
"""How long a connection waits for another one that writes, unless somebody says otherwise; as in Python."""
_HAS_FAILED: Final = "SELECT 1 FROM temp.jobs_failed"

_switching = threading.Lock()


class GuardedCursor(sqlite3.Cursor):
    """A cursor whose statements are looked at first."""

    connection: GuardedConnection

    def execute(self, sql: str, parameters: Any = (), /) -> GuardedCursor:
        """Execute a statement, unless it would end a transaction that has an owner."""
        self.connection.guard.before_statement(sql)
        super().execute(sql, parameters)
        return self


class GuardedConnection(sqlite3.Connection):
    """A connection that executes its owner's message before COMMIT, and commits no aborted transaction."""

    def __init__(self, guard: Guard, *args: Any, factory: object = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.guard = guard

    def cursor(self, factory: Any = GuardedCursor) -> Any:
        """Return a guarded cursor."""
        return super().cursor(factory)

    def commit(self) -> None:
        """Commit, if the guard allows it."""
        owner = self.guard.before_commit()
        if owner is not None:
            if self.execute(_HAS_FAILED).fetchone():
                raise sqlite3.OperationalError(FAILED)
            self.execute(owner.commit_message)
        super().commit()


def connect(_dialect: object, record: Record, _args: list[Any], options: dict[str, Any]) -> None:
    """Let SQLAlchemy open a guarded connection, for threads or coroutines; its `do_connect`."""
    options["factory"] = partial(GuardedConnection, new_guard(record))


def prepare(connection: Any, _record: object) -> None:
    """Set up a new connection; SQLAlchemy calls it after each connect.

    WAL lets readers go on while a job writes. `synchronous=FULL` makes every commit wait for the disk: with
    the cheaper NORMAL, WAL loses the newest commits in a power cut, which is what `synchronous_commit=off`
    does, and that is refused on PostgreSQL. Foreign keys are enforced, as they are there.

    Parameters:
        connection: of the `sqlite3` module, or SQLAlchemy's adapter around one of `aiosqlite`.
    """
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA journal_mode")
        if cursor.fetchone()[0] != "wal":
            _switch_to_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("CREATE TEMP TABLE jobs_failed (failed INTEGER)")  # see `mark_failed`
    finally:
        cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Change the file's journal mode, once and for all; needs the file alone for a moment."""
    with _switching:
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.fetchone()


def mark_failed(connection: Any) -> None:
    """Mark the transaction as aborted, in itself: rolling back to a savepoint takes the mark along.

    PostgreSQL does so by itself. SQLite undoes the failed statement alone, and would commit the rest.
    """
    cursor = connection.cursor()
    try:
        cursor.execute("INSERT INTO temp.jobs_failed VALUES (1)")
    finally:
        cursor.close()


def has_failed(connection: Any) -> bool:
    """Whether the transaction is marked as aborted."""
    cursor = connection.cursor()
    try:
        cursor.execute(_HAS_FAILED)
        return cursor.fetchone() is not None
    finally:
        cursor.close()


def is_busy(error: BaseException | None) -> bool:
    """Whether an error says that another connection is writing."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY
