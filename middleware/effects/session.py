"""Which session does an actor with an idempotency key write with, and what may it do with it?

It is in the transaction that holds the ledger row. Whatever would end that transaction before the actor
returns is refused: the effect would be committed without the key, or the key without the effect.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, SessionTransaction

from ..errors import LedgerViolation

if TYPE_CHECKING:
    from .transaction import LedgerTransaction

current: Final[ContextVar[LedgerTransaction | None]] = ContextVar("jobs_ledger_transaction", default=None)
"""The ledger transaction of this thread or coroutine; a thread that an actor starts does not inherit it."""

committing: Final[ContextVar[LedgerTransaction | None]] = ContextVar("jobs_ledger_commit", default=None)
"""The one that is being flushed or committed here, as those see who listen to its session's events."""

ADVICE: Final = (
    "return from the actor and the kit commits, raise and it rolls back; to undo a part, enclose it in "
    "`with session.begin_nested():`"
)


class LedgerSession(Session):
    """A session that leaves the end of its transaction to the kit."""

    owner: LedgerTransaction | None = None
    """Who refuses."""

    def commit(self) -> None:
        """Refuse.

        Raises:
            LedgerViolation: always, as the other methods that end a transaction do.
        """
        self._refuse("commit()")

    def rollback(self) -> None:
        """Refuse; see `commit`."""
        self._refuse("rollback()")

    def close(self) -> None:
        """Refuse; see `commit`."""
        self._refuse("close()")

    def reset(self) -> None:
        """Refuse; see `commit`."""
        self._refuse("reset()")

    def invalidate(self) -> None:
        """Refuse; see `commit`."""
        self._refuse("invalidate()")

    def prepare(self) -> None:
        """Refuse; see `commit`."""
        self._refuse("prepare()")

    def begin(self, nested: bool = False) -> SessionTransaction:
        """Begin a savepoint; anything else is refused, see `commit`."""
        if not nested:
            self._refuse("begin()")
        return super().begin(nested=True)

    def _refuse(self, call: str) -> NoReturn:
        if self.owner is None:
            raise LedgerViolation(f"expected the session to be used while its actor runs, got: {call} later")
        self.owner.refuse(f"{call} of the session")


def current_session() -> Session:
    """Return the session of the running actor, for a `def` actor with an idempotency key.

    What is written with it is committed together with the key, once.

    Raises:
        RuntimeError: no such actor runs in this thread.
    """
    transaction = current.get()
    if transaction is None:
        raise _outside("current_session()")
    if transaction.async_session is not None:
        raise RuntimeError(
            "expected current_session() to be called in a `def` actor, got: an `async def` one; "
            "use current_async_session()"
        )
    return transaction.session


def current_async_session() -> AsyncSession:
    """Return the session of the running actor, for an `async def` actor with an idempotency key.

    Raises:
        RuntimeError: no such actor runs in this coroutine.
    """
    transaction = current.get()
    if transaction is None:
        raise _outside("current_async_session()")
    if transaction.async_session is None:
        raise RuntimeError(
            "expected current_async_session() to be called in an `async def` actor, got: a `def` one; "
            "use current_session()"
        )
    return transaction.async_session


def _outside(call: str) -> RuntimeError:
    return RuntimeError(
        f"expected {call} to be called while an actor with an idempotency_key runs, got: no such actor in "
        "this thread; declare idempotency_key=… on the actor, or do the writing in the actor's own thread"
    )


def sync_part(session: AsyncSession) -> LedgerSession:
    """Return the session that an AsyncSession of `open_async_session` works with."""
    part = session.sync_session
    assert isinstance(part, LedgerSession)
    return part


def open_session(bind: Any) -> LedgerSession:
    """Return a session for a `def` actor."""
    return LedgerSession(bind, expire_on_commit=False, close_resets_only=False)


def open_async_session(bind: Any) -> AsyncSession:
    """Return a session for an `async def` actor."""
    return AsyncSession(
        bind, sync_session_class=LedgerSession, expire_on_commit=False, close_resets_only=False
    )
