"""What must a database do for the ledger? Implemented once for each database, used by threads and coroutines.

All of it runs on a SQLAlchemy `Connection`; under an async engine it is called within SQLAlchemy's greenlet.
"""

from __future__ import annotations

from typing import Any, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from .entry import Entry, Limits


class KeyBusy(Exception):
    """Somebody else is writing: a twin with the same key, or, on SQLite, whoever has the writer's lock."""


class Stale(Exception):
    """The connection was dead before the transaction began: another one may work."""

    def __init__(self, error: DBAPIError) -> None:
        super().__init__(str(error))
        self.error = error


class CommitUnknown(Exception):
    """The connection was lost while COMMIT was under way."""

    def __init__(self, error: DBAPIError) -> None:
        super().__init__(str(error))
        self.error = error


class TransactionEnded(Exception):
    """The transaction is not the one that was opened: somebody ended it."""


class TransactionAborted(Exception):
    """The transaction is the one that was opened, and an SQL error has aborted it."""


class Database(Protocol):
    """The ledger's statements in one database's dialect."""

    def open(self, connection: Connection, entry: Entry, limits: Limits) -> Any:
        """Begin a transaction and insert the row.

        Returns:
            The message by which the connection's guard commits this transaction and no other; None if the
            key is spent.

        Raises:
            KeyBusy: not within `limits.wait_ms`.
            Stale: the connection was dead.
        """
        ...

    def join(self, connection: Connection, entry: Entry, limits: Limits) -> bool:
        """Insert a row in the transaction that is open; False if the key is spent.

        Raises:
            KeyBusy: not within `limits.wait_ms`.
        """
        ...

    def held_hash(self, connection: Connection, key: str) -> bytes | None:
        """Return the arguments' hash that a key was spent with; None if it is not spent."""
        ...

    def mark_failed(self, connection: Connection) -> None:
        """Take note of an SQL error, so that `is_aborted` knows whether a savepoint has undone it."""
        ...

    def is_aborted(self, connection: Connection) -> bool:
        """Whether an SQL error has aborted the transaction."""
        ...

    def explain(self, error: DBAPIError) -> Exception:
        """Return what an error of the guard's commit means.

        Returns:
            TransactionEnded, TransactionAborted or CommitUnknown; the error itself if the database
            refuses the commit.
        """
        ...
