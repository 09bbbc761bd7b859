"""What may one attempt at an effect outside the database do: begin its call, be confirmed, or have failed?"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from .awaiting import in_thread
from .effect import Effect, shield
from .entering import running
from .entry import Entry
from .happened import may_have_happened
from .intents import Token, confirm

if TYPE_CHECKING:
    from .external import External
    from .transaction import LedgerTransaction

LONGEST_RESULT: Final = 4096
"""Characters of JSON: a reference to what the provider keeps, not a copy of it."""


class Overtaken(BaseException):
    """The attempt is not this worker's any more: unwinds the actor before its call, see `Lost`."""


class Attempt(Effect):
    """One attempt; its effect block is its confirmation.

    Parameters:
        external: how its actor's jobs run.
        entry: the job's row.
        fence: the attempt's number.
        is_call: whether the actor makes its call; False while a provider is asked about an earlier one.

    Attributes:
        has_asked: the actor has asked for its key.
        has_called: it says itself that its call was made: it has returned, or come to confirm.
        result: what is stored with the confirmation, JSON.
    """

    def __init__(self, external: External, entry: Entry, fence: int, *, is_call: bool = True) -> None:
        super().__init__(external.terms, entry, is_async=external.is_async)
        self.token: Token = (entry.key, fence)
        self.has_asked = False
        self.has_called = False
        self.result: str | None = None
        self._external = external
        self._intents = external.intents
        self._is_call = is_call

    # --- before the call ---

    def key(self) -> str:
        """Return the key, if the attempt is still this worker's, or is being confirmed.

        Raises:
            Overtaken: it is not.
        """
        is_confirmed = self.is_written or self._transaction is not None
        if self._is_call and not is_confirmed:
            with shield():  # it takes its turn to write, and must not be cut while it has it
                if not self._intents.ask(self.token):
                    raise Overtaken
                self.has_asked = True
        return self.entry.key

    # --- after the call ---

    def keep(self, result: Any) -> None:
        """Take what is to be stored with the confirmation.

        Raises:
            ValueError: it is not plain JSON, or too long.
        """
        if result is None:
            return
        try:
            text = json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"expected result to be plain JSON, got: {error}; keep ids and texts") from None
        if len(text) > LONGEST_RESULT:
            raise ValueError(
                f"expected result to be at most {LONGEST_RESULT} characters of JSON, got: {len(text)}; keep "
                "the provider's id, and the rest in rows of your own"
            )
        self.result = text

    def needs_confirmation(self) -> bool:
        """Return whether the kit has to confirm, because the actor has returned without doing so itself.

        Raises:
            BaseException: what made the actor's own block fail, which it has swallowed.
        """
        self.has_called = True
        if self.is_written or self.is_lost:
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def may_have_happened(self, error: BaseException) -> bool:
        """Whether the call may have had an effect, now that the actor has ended with an error."""
        if self.has_called:
            return True
        if self._external.is_careful and not self.has_asked:
            return False
        return may_have_happened(error)

    def _check_entry(self, *, is_async: bool) -> None:
        self.has_called = True  # who confirms has called; what the block raises says nothing about the call
        super()._check_entry(is_async=is_async)

    def _prove(self, transaction: LedgerTransaction) -> None:
        """Do nothing: that was done before the call, which is over and has to be written down."""

    def _write(self) -> None:
        assert self._transaction is not None
        connection = self._transaction.session.connection()
        if not confirm(connection, self.token, self.result, is_careful=self._external.is_careful):
            self._lose()
        super()._write()


def current_key() -> str:
    """Return the idempotency key of the running attempt, for the provider; in a `def` actor.

    To be asked for just before the call: it checks that no other worker has taken the attempt over, and notes
    that the call begins. For an actor with `effect="external"`, and its `reconcile=`.

    Raises:
        RuntimeError: no such actor runs in this thread.
    """
    return _attempt("current_key", is_async=False).key()


async def current_key_async() -> str:
    """Return the idempotency key of the running attempt, for the provider; in an `async def` actor.

    Raises:
        RuntimeError: no such actor runs in this coroutine.
    """
    attempt = _attempt("current_key_async", is_async=True)
    has_asked = attempt.has_asked
    try:
        return await in_thread(attempt.key)
    except asyncio.CancelledError:
        attempt.has_asked = has_asked  # whatever came of it, the actor does not get to call
        raise


def _attempt(name: str, *, is_async: bool) -> Attempt:
    found = running.get()
    if not isinstance(found, Attempt):
        raise RuntimeError(
            f"expected {name}() to be called while an actor with effect='external' runs, got: no such "
            'actor in this thread; declare effect="external" on the actor, or call it in its own thread'
        )
    if found.is_async is not is_async:
        form = "`await current_key_async()`" if found.is_async else "`current_key()`"
        raise RuntimeError(
            f"expected the actor's own form of its key, got: {name}(); write {form} in an "
            f"`{'async def' if found.is_async else 'def'}` actor"
        )
    return found
