"""What does the ledger hear of what happens on its connections? SQLAlchemy's events, on engines of its own.

The engines share the store's pools; only connections that a ledger transaction uses pay for listening.
"""

from __future__ import annotations

import re
import threading
import weakref
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from ..errors import LedgerViolation
from ..store import Store
from .transaction import OPTION, LedgerTransaction

_ENDS_TRANSACTION: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    r"(?:COMMIT|END|ABORT|BEGIN|START\s+TRANSACTION|PREPARE\s+TRANSACTION|ROLLBACK(?!\s+(?:\w+\s+)?TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)


class LedgerEngines:
    """The store's engines, with the ledger's listeners.

    Parameters:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._sync: tuple[Engine, Engine] | None = None
        self._async: weakref.WeakKeyDictionary[AsyncEngine, AsyncEngine] = weakref.WeakKeyDictionary()

    @property
    def sync(self) -> Engine:
        """For threads."""
        base, known = self._store.engine, self._sync
        if known is None or known[0] is not base:
            with self._lock:
                known = self._sync = base, _listening(base.execution_options())
        return known[1]

    @property
    def asynchronous(self) -> AsyncEngine:
        """For the running event loop."""
        base = self._store.async_engine
        engine = self._async.get(base)
        if engine is None:
            with self._lock:
                engine = base.execution_options()
                _listening(engine.sync_engine)
                self._async[base] = engine
        return engine


def _listening(engine: Engine) -> Engine:
    event.listen(engine, "before_cursor_execute", _before_cursor_execute)
    event.listen(engine, "commit", _commit)
    event.listen(engine, "savepoint", _savepoint)
    event.listen(engine, "release_savepoint", _release_savepoint)
    event.listen(engine, "rollback_savepoint", _rollback_savepoint)
    if not event.contains(
        engine, "handle_error", _handle_error
    ):  # belongs to the dialect, which engines share
        event.listen(engine, "handle_error", _handle_error)
    return engine


def _of(connection: Connection) -> LedgerTransaction | None:
    transaction: LedgerTransaction | None = connection.get_execution_options().get(OPTION)
    return transaction


def _before_cursor_execute(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
    """Refuse SQL that ends the transaction: what it commits could not be taken back."""
    transaction = _of(connection)
    if transaction is not None and _ENDS_TRANSACTION.match(statement):
        transaction.violation = LedgerViolation(
            "expected the transaction that holds the ledger row to be left alone, got: "
            f"{statement.strip()[:80]!r}; return from the actor and the kit commits, raise and it rolls back"
        )
        raise transaction.violation


def _commit(connection: Connection) -> None:
    transaction = _of(connection)
    if transaction is not None:
        transaction.commit_on(connection)


def _savepoint(connection: Connection, _name: str | None) -> None:
    transaction = _of(connection)
    if transaction is not None:
        transaction.savepoints.opened()


def _release_savepoint(connection: Connection, name: str, _context: None) -> None:
    transaction = _of(connection)
    if transaction is not None:
        transaction.savepoints.released(name)


def _rollback_savepoint(connection: Connection, name: str, _context: None) -> None:
    transaction = _of(connection)
    if transaction is not None:
        transaction.savepoints.rolled_back(name)


def _handle_error(context: ExceptionContext) -> None:
    transaction = None if context.connection is None else _of(context.connection)
    if transaction is not None and isinstance(context.sqlalchemy_exception, DBAPIError):
        transaction.savepoints.failed(context.sqlalchemy_exception)
