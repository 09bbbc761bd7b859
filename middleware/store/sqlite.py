"""How is an SQLite file opened, so that it keeps the promises PostgreSQL keeps?"""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

_switching = threading.Lock()


def prepare_sqlite(connection: Any, _record: object) -> None:
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
    finally:
        cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Change the file's journal mode, once and for all; needs the file alone for a moment."""
    with _switching:
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.fetchone()


def is_busy(error: BaseException | None) -> bool:
    """Whether an error says that another connection is writing."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY
