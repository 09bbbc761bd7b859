"""When does the effect of a long computation take place? In the block that the actor enters at its end.

`with effect() as session:` opens the transaction that inserts the key; leaving the block commits it, under
the same rules as a whole actor of `effect="database"`. Who comes second with a key is unwound there, and what
it has computed is thrown away.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, NoReturn

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from ..errors import LedgerViolation
from ..transport.delivery import current_delivery
from .awaiting import in_thread, to_its_end
from .databases import CommitUnknown, KeyBusy
from .entry import Entry
from .session import current, open_async_session, open_session, sync_part
from .terms import Terms
from .transaction import LedgerTransaction

_WAIT: Final = timedelta(seconds=10)
"""How long a finished computation waits to be written: thrown away, it would have to be repeated."""


class Lost(BaseException):
    """The key is spent: unwinds the actor. No `Exception`, so that none is caught and worked around."""


class Effect:
    """The one block of a job in which its effect takes place; entered with `with` or `async with`.

    Parameters:
        terms: the actor's.
        entry: the job's row.
        is_async: whether the actor is an `async def`.

    Attributes:
        is_async: see above.
        is_lost: somebody else has spent the key.
        is_written: it is committed.
    """

    def __init__(self, terms: Terms, entry: Entry, *, is_async: bool) -> None:
        self.terms = terms
        self.entry = entry
        self.is_lost = False
        self.is_written = False
        self.is_async = is_async
        self._has_turn = False
        self._transaction: LedgerTransaction | None = None
        self._failure: BaseException | None = None

    # --- in a thread ---

    def __enter__(self) -> Session:
        """Insert the key.

        Raises:
            Lost: it is spent.
            KeyConflict: it is spent with other arguments.
            Snooze: it is not to be had for ten seconds.
            LedgerViolation: this is no place to enter.
        """
        self._check_entry(is_async=False)
        try:
            with shield():
                return self._open()
        except BaseException as error:
            self._failure = error
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back if the block raised."""
        self._failure = error
        try:
            if error is None:
                with shield():
                    self._commit()
        except BaseException as failed:
            self._failure = failed
            raise
        finally:
            self.close()

    def _open(self) -> Session:
        store = self.terms.store
        if store.is_sqlite:
            self._has_turn = store.writers.acquire(_WAIT.total_seconds())
            self._check_turn()
        self._transaction = LedgerTransaction(store, self.terms.database, open_session(store.engine))
        self._insert(self._transaction)
        current.set(self._transaction)
        return self._transaction.session

    def _commit(self) -> None:
        try:
            self._write()
        except CommitUnknown as unknown:
            self._resolve(unknown)

    def close(self) -> None:
        """End what is open: after the block, or if an interrupt came between entering and being in it."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            current.set(None)
            transaction.close()
        self._release()

    # --- in a coroutine ---

    async def __aenter__(self) -> AsyncSession:
        """Do as `__enter__`."""
        self._check_entry(is_async=True)
        try:
            return await self._open_async()
        except BaseException as error:
            self._failure = error
            await self.close_async()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do as `__exit__`."""
        self._failure = error
        try:
            if error is None:
                with shield():
                    await to_its_end(self._commit_async())
        except BaseException as failed:
            self._failure = failed
            raise
        finally:
            await self.close_async()

    async def _open_async(self) -> AsyncSession:
        store = self.terms.store
        if store.is_sqlite:
            self._has_turn = await store.writers.acquire_async(_WAIT.total_seconds())
            self._check_turn()
        session = open_async_session(store.async_engine)
        transaction = LedgerTransaction(store, self.terms.database, sync_part(session), session)
        self._transaction = transaction
        await session.run_sync(lambda _: self._insert(transaction))
        current.set(transaction)
        return session

    async def _commit_async(self) -> None:
        assert self._transaction is not None
        assert self._transaction.async_session is not None
        try:
            await self._transaction.async_session.run_sync(lambda _: self._write())
        except CommitUnknown as unknown:
            await in_thread(self._resolve, unknown)

    async def close_async(self) -> None:
        """Do as `close`."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            current.set(None)
            assert transaction.async_session is not None
            await to_its_end(transaction.async_session.run_sync(lambda _: transaction.close()))
        self._release()

    # --- what both have in common ---

    def keep(self, result: Any) -> None:
        """Take what is to be stored with the effect.

        Raises:
            LedgerViolation: the actor is not one of those that have a result.
        """
        if result is not None:
            raise LedgerViolation(
                f"actor {self.entry.actor!r}: expected result to be given with effect='external', got: it "
                "with another; write it to a row of your own"
            )

    def check(self) -> bool:
        """Return whether this job's effect took place, once the actor has returned; False if a twin's did.

        Raises:
            LedgerViolation: the actor never entered.
            BaseException: what made the block fail, which the actor has swallowed.
        """
        if self.is_written or self.is_lost:
            return self.is_written
        if self._failure is not None:
            raise self._failure
        raise LedgerViolation(
            f"actor {self.entry.actor!r}: expected an actor with effect='late' to enter `with effect() as "
            "session:` before it returns, got: a return without; write in that block what it has "
            "computed, or enter it with `pass` if there is nothing to write"
        )

    def _check_entry(self, *, is_async: bool) -> None:
        if is_async is not self.is_async:
            forms = "`async with`, as in any `async def` actor", "`with`, as in any `def` actor"
            raise self._misused("the other form", f"write {forms[not self.is_async]}")
        if current.get() is not None:
            raise self._misused("a ledger transaction that is open", "leave that block first")
        if self.is_written:
            raise self._misused(
                "a second time; what the first block wrote is committed", "write in one block"
            )

    def _misused(self, what: str, way_out: str) -> LedgerViolation:
        return LedgerViolation(
            f"actor {self.entry.actor!r}: expected effect() to be entered once, and outside any ledger "
            f"transaction, got: {what}; {way_out}"
        )

    def _check_turn(self) -> None:
        if not self._has_turn:
            raise self.terms.busy(self.entry, _WAIT)

    def _insert(self, transaction: LedgerTransaction) -> None:
        try:
            is_new = transaction.open(self.entry, self.terms.limits(_WAIT))
        except KeyBusy:
            raise self.terms.busy(self.entry, _WAIT) from None
        if not is_new:
            self._lose()
        self._prove(transaction)

    def _prove(self, transaction: LedgerTransaction) -> None:
        self.terms.prove(transaction.session.connection, self.entry)

    def _write(self) -> None:
        assert self._transaction is not None
        self.terms.free(self._transaction)
        self._transaction.commit()
        self.is_written = True

    def _resolve(self, unknown: CommitUnknown) -> None:
        if not self.terms.resolve(self.entry, unknown):
            self._lose()
        self.is_written = True

    def _lose(self) -> NoReturn:
        self.is_lost = True
        raise Lost

    def _release(self) -> None:
        has_turn, self._has_turn = self._has_turn, False
        if has_turn:
            self.terms.store.writers.release()


def shield() -> AbstractContextManager[Any]:
    """Keep time limits and shutdowns out: they may interrupt a computation, never a commit."""
    delivery = current_delivery()
    armed = None if delivery is None else delivery.armed
    return nullcontext() if armed is None else armed.shielded()
