"""One job's ledger transaction, from the INSERT of its key to the COMMIT: what may happen to it in between?

Used by threads as it is, and by coroutines within SQLAlchemy's greenlet.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from ..errors import KeyConflict, LedgerViolation
from ..logs import get_logger
from ..store import Store
from .databases import Database, KeyBusy, Stale, TransactionAborted, TransactionEnded
from .entry import Entry, Limits
from .savepoints import Savepoints
from .session import LedgerSession

log = get_logger(__name__)

OPTION: Final = "jobs_ledger"
"""The execution option by which a connection's events find their ledger transaction."""
_MOST_STALE: Final = 200
"""Dead connections that the pool may hand out in a row, as after a restart of the server: all it has."""


class LedgerTransaction:
    """The transaction that holds a job's ledger row.

    Attributes:
        store: where it is.
        session: what the actor writes with.
        async_session: the same for an `async def` actor, None for a `def` one.
        violation: what the actor tried and was refused; it fails the attempt even if swallowed.
        ending: the kit itself ends the transaction now.
        savepoints: which are open, and which SQL error none of them has undone.
    """

    def __init__(
        self,
        store: Store,
        database: Database,
        session: LedgerSession,
        async_session: AsyncSession | None = None,
    ) -> None:
        self.store = store
        self.database = database
        self.session = session
        self.async_session = async_session
        self.violation: LedgerViolation | None = None
        self.ending = False
        self.savepoints = Savepoints()
        self._connection: Connection | None = None
        self._root: RootTransaction | None = None
        self._token: Any = None
        self._is_committed = False
        session.ledger = self

    def open(self, entry: Entry, limits: Limits) -> bool:
        """Take a connection, begin and insert the row.

        Parameters:
            entry: the row.
            limits: of waiting.

        Returns:
            False if the job has been done: its key is spent with the same arguments.

        Raises:
            KeyBusy: a twin runs, or, on SQLite, another process writes.
            KeyConflict: the key is spent with other arguments.
            sqlalchemy.exc.DBAPIError: the database does not answer, or refuses.
        """
        stale_left = _MOST_STALE
        while True:
            connection = self.session.connection(execution_options={OPTION: self})
            try:
                self._connection = connection
                self._token = self.database.open(connection, entry, limits)
            except Stale as stale:
                stale_left -= 1
                if stale_left < 0:
                    raise stale.error from None
                Session.reset(self.session)
                continue
            self._root = connection.get_transaction()
            if self._token is None:
                self._compare(entry)
                return False
            return True

    def join(self, entry: Entry, limits: Limits) -> bool:
        """Insert another actor's row in the savepoint that is open; False if its key is spent.

        Raises:
            KeyBusy, KeyConflict: as `open`.
        """
        assert self._connection is not None
        if self.database.join(self.session.connection(), entry, limits):
            return True
        self._compare(entry)
        return False

    def _compare(self, entry: Entry) -> None:
        assert self._connection is not None
        held = self.database.held_hash(self._connection, entry.key)
        if held is None:
            raise KeyBusy  # somebody has just removed the row
        if held != entry.args_hash:
            raise KeyConflict(
                f"expected the arguments that idempotency key {entry.key!r} was spent with, got: others; "
                "name in idempotency_key every argument that tells jobs apart"
            )

    def check(self) -> None:
        """Raise what the actor has swallowed.

        Raises:
            LedgerViolation: it tried to end the transaction, or an SQL error has aborted it.
            sqlalchemy.exc.DBAPIError: it swallowed the loss of the connection, which another attempt cures.
        """
        if self.violation is not None:
            raise self.violation
        failure, connection = self.savepoints.failure, self._connection
        if failure is not None and failure.connection_invalidated:
            raise failure
        if connection is None or connection.invalidated or connection.get_transaction() is not self._root:
            raise _ended() if failure is None else _aborted(failure)
        if self.database.is_aborted(connection, failure):
            raise _aborted(failure)

    def commit(self) -> None:
        """Check, flush, check again and commit; `commit_on` does the last two.

        Raises:
            LedgerViolation: the actor ended or broke the transaction; nothing was committed by this call.
            CommitUnknown: the connection was lost while COMMIT was under way.
            sqlalchemy.exc.DBAPIError: the database refuses what was flushed, or the commit.
        """
        self.check()
        self.session.flush()
        self.ending = True
        try:
            Session.commit(self.session)
        except TransactionAborted as error:
            raise _aborted(self.savepoints.failure) from error
        except TransactionEnded as error:
            raise _ended() from error
        self._is_committed = True

    def close(self) -> None:
        """Give the connection back; whatever is not committed is rolled back."""
        self.ending = True
        if not self._is_committed:
            self._roll_back()
        try:
            Session.close(self.session)
        except Exception as error:
            log.info("ledger.close_failed", error=repr(error))
        self._connection = self._root = None  # no cycle for the garbage collector to find

    def _roll_back(self) -> None:
        """Roll back on the driver: SQLAlchemy takes a transaction whose commit failed for a closed one."""
        connection = self._connection
        if connection is None or connection.invalidated or connection.closed:
            return
        try:
            connection.connection.rollback()
        except Exception as error:  # the connection is lost, and the database rolls back by itself
            log.info("ledger.rollback_failed", error=repr(error))
            connection.invalidate(error)

    def commit_on(self, connection: Connection) -> None:
        """Called as the session's connection is about to commit.

        Raises:
            LedgerViolation: it was not the kit that asked for it, or the actor broke the transaction.
            TransactionEnded, TransactionAborted, CommitUnknown: see `Database.commit`.
        """
        if not self.ending:
            self.violation = LedgerViolation(
                "expected the transaction that holds the ledger row to be left alone, got: commit() of the "
                "session's connection or transaction; return from the actor and the kit commits"
            )
            raise self.violation
        self.check()
        self.database.commit(connection, self._token)


def _aborted(failure: DBAPIError | None) -> LedgerViolation:
    what = (
        f"{type(failure.orig).__name__}: {failure.orig}".strip() if failure is not None else "cause unknown"
    )
    return LedgerViolation(
        f"expected the actor's transaction to be healthy when it returned, got: an SQL error that it "
        f"swallowed ({what}); nothing was written. Let the error out, or enclose the statement that may "
        "fail in `with session.begin_nested():` inside the try"
    )


def _ended() -> LedgerViolation:
    return LedgerViolation(
        "expected the transaction that holds the ledger row to be open when the actor returned, got: another "
        "one or none, so the actor ended it below the session; remove its COMMIT or ROLLBACK. What it wrote "
        "after that is undone; what it committed itself stays, and the key with it: check that job by hand"
    )
