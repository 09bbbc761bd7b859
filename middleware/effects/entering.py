"""Which effect does the running actor enter, and where may such an actor run?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from ..errors import LedgerViolation
from .effect import Effect
from .session import current
from .terms import Terms

running: Final[ContextVar[Effect | None]] = ContextVar("jobs_effect", default=None)
"""The effect of the actor that runs in this thread or coroutine."""


def effect(*, result: Any = None) -> Effect:
    """Return the block in which the effect of the running actor takes place, or is confirmed.

    `with effect() as session:`, or `async with` in an `async def` actor, inserts the key; leaving the block
    commits what was written with the session. Everything before it runs outside any transaction. An actor
    enters once; a block that raised has written nothing and may be entered again.

    With `effect="late"` the actor has to enter it. With `effect="external"` it is the confirmation of a call
    that was made, for actors that have rows of their own to write with it.

    Parameters:
        result: with `effect="external"`, what to store with the confirmation: plain JSON of at most 4,096
            characters, such as the provider's id. Defaults to nothing.

    Raises:
        RuntimeError: no such actor runs in this thread or coroutine.
    """
    found = running.get()
    if found is None:
        raise RuntimeError(
            "expected effect() to be called while an actor with effect='late' or 'external' runs, got: no "
            'such actor in this thread; declare effect="late" on the actor, or call it in its own thread'
        )
    found.keep(result)
    return found


def check_outside(terms: Terms) -> None:
    """Refuse a direct call within a transaction: the work is to be done outside of any.

    Raises:
        LedgerViolation: another keyed actor's transaction is open.
    """
    if current.get() is not None:
        raise LedgerViolation(
            f"actor {terms.keyed.name!r}: expected an actor with effect={terms.keyed.effect!r} to be called "
            "outside any ledger transaction, got: a direct call within another actor's; send it"
        )


@contextmanager
def declared(effect: Effect) -> Iterator[None]:
    """Let `effect()` return this one while the block runs."""
    token = running.set(effect)
    try:
        yield
    finally:
        running.reset(token)
