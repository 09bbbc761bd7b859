"""One job's ledger transaction, from the INSERT of its key to the COMMIT: what may happen to it in between?

Used by threads as it is, and by coroutines within SQLAlchemy's greenlet.
"""

from __future__ import annotations

import threading
from typing import Any, Final, NoReturn

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from ..errors import LedgerViolation, NotEnqueued
from ..logs import get_logger
from ..store import Store
from ..store.guard import Guard, guard_of
from .databases import Database, KeyBusy, Stale, TransactionAborted, TransactionEnded
from .entry import Entry, Limits
from .recovery import conflict
from .session import ADVICE, LedgerSession, committing

log = get_logger(__name__)

_MOST_STALE: Final = 200
"""Dead connections that the pool may hand out in a row, as after a restart of the server: all it has."""


class LedgerTransaction:
    """The transaction that holds a job's ledger row; the owner of its connection's guard.

    Attributes:
        store: where it is.
        session: what the actor writes with.
        async_session: the same for an `async def` actor, None for a `def` one.
        ending: the kit itself ends the transaction now.
        commit_message: what the connection sends to commit.
    """

    def __init__(
        self,
        store: Store,
        database: Database,
        session: LedgerSession,
        async_session: AsyncSession | None = None,
    ) -> None:
        self.store = store
        self.session = session
        self.async_session = async_session
        self.ending = False
        self.commit_message: Any = None
        self._database = database
        self._connection: Connection | None = None
        self._root: RootTransaction | None = None
        self._guard: Guard | None = None
        self._violation: LedgerViolation | None = None
        self._failure: DBAPIError | None = None
        self._is_committed = False
        self._thread_id = threading.get_ident()
        self._takes_sends = True
        session.owner = self

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
            self._connection = connection = self.session.connection()
            try:
                self.commit_message = self._database.open(connection, entry, limits)
                break
            except Stale as stale:
                stale_left -= 1
                if stale_left < 0:
                    raise stale.error from None
                Session.reset(self.session)
        if self.commit_message is None:
            self._compare(entry)
            return False
        self._root = connection.get_transaction()
        self._guard = guard_of(connection)
        self._guard.owner = self
        return True

    def join(self, entry: Entry, limits: Limits) -> bool:
        """Insert another actor's row in the savepoint that is open; False if its key is spent.

        Raises:
            KeyBusy, KeyConflict: as `open`.
        """
        if self._database.join(self.session.connection(), entry, limits):
            return True
        self._compare(entry)
        return False

    def _compare(self, entry: Entry) -> None:
        assert self._connection is not None
        held = self._database.held_hash(self._connection, entry.key)
        if held is None:
            raise KeyBusy  # somebody has just removed the row
        if held != entry.args_hash:
            raise conflict(entry)

    def check(self) -> None:
        """Raise what the actor has swallowed.

        Raises:
            LedgerViolation: it tried to end the transaction, or an SQL error has aborted it.
            sqlalchemy.exc.DBAPIError: it swallowed the loss of the connection, which another attempt cures.
        """
        if self._violation is not None:
            raise self._violation
        failure, connection = self._failure, self._connection
        if failure is not None and failure.connection_invalidated:
            raise failure
        if connection is None or connection.invalidated or connection.get_transaction() is not self._root:
            raise _ended() if failure is None else _aborted(failure)
        if failure is not None and self._database.is_aborted(connection):
            raise _aborted(failure)

    def takes_sends(self) -> bool:
        """Whether a send joins: while the actor runs, in its own thread, or in an event of the last flush.

        Raises:
            NotEnqueued: the transaction is being committed; what joins now would be lost.
        """
        if self.session.owner is None or self._thread_id != threading.get_ident():
            return False
        if not self._takes_sends and committing.get() is self:
            root = self.session.get_transaction()
            return root is not None and root.is_active  # it is not any more in `after_commit`
        if not self._takes_sends:
            raise NotEnqueued(
                "expected a send to be made while the actor runs, got: one during its commit, from a task "
                "that it left running; await what the actor starts"
            )
        return True

    def flush(self) -> None:
        """Check and flush: after this only the commit itself can fail; no task of the actor's joins any more.

        Raises:
            LedgerViolation, sqlalchemy.exc.DBAPIError: as `commit`.
        """
        self._takes_sends = False
        self.check()
        token = committing.set(self)
        try:
            self.session.flush()
        finally:
            committing.reset(token)

    def commit(self) -> None:
        """Check, flush and commit; the connection's guard checks again, in the message that commits.

        Raises:
            LedgerViolation: the actor ended or broke the transaction; nothing was committed by this call.
            CommitUnknown: the connection was lost while COMMIT was under way.
            sqlalchemy.exc.DBAPIError: the database refuses what was flushed, or the commit.
        """
        self.flush()
        failure = self._failure
        self.ending = True
        token = committing.set(self)
        try:
            Session.commit(self.session)
        except DBAPIError as error:
            meaning = self._database.explain(error)
            if isinstance(meaning, TransactionAborted):
                raise _aborted(failure or self._failure) from error
            if isinstance(meaning, TransactionEnded):
                raise _ended() from error
            raise meaning from error.__cause__
        finally:
            committing.reset(token)
        self._is_committed = True

    def close(self) -> None:
        """Give the connection back; whatever is not committed is rolled back."""
        self.ending = True
        if not self._is_committed:
            self._roll_back()
        if self._guard is not None:
            self._guard.owner = None
        try:
            Session.close(self.session)
        except Exception as error:
            log.info("ledger.close_failed", error=repr(error))
        self.session.owner = self._connection = self._root = None  # no cycle for the garbage collector

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

    def refuse(self, what: str) -> NoReturn:
        """Refuse to end the transaction; see `Owner`.

        Raises:
            LedgerViolation: always; it fails the attempt even if the actor swallows it.
        """
        self._violation = LedgerViolation(
            f"expected the transaction that holds the ledger row to be left alone, got: {what}; {ADVICE}"
        )
        raise self._violation

    def failed(self, connection: Connection, error: DBAPIError) -> None:
        """Note an SQL error, in case the actor swallows it; see `Owner`."""
        self._failure = error
        if not error.connection_invalidated:
            self._database.mark_failed(connection)


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
