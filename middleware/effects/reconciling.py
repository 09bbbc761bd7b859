"""What if nobody knows whether an effect took place? The provider is asked, or a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from inspect import iscoroutinefunction
from shlex import quote
from typing import Any, Final

from dramatiq import Actor

from ..errors import DeclarationError, UnknownOutcome
from ..transport.wrapping import coroutine_of
from .entry import Entry

RETRY: Final = "retry"


class Reconciled(StrEnum):
    """What the provider says of an earlier attempt; `reconcile=` returns one of these."""

    DONE = "done"
    """It took effect: it is confirmed, and not made again."""
    NOT_DONE = "not_done"
    """It did nothing, and never will: the next attempt is made."""
    UNKNOWN = "unknown"
    """The provider cannot say, or is still at it: it is asked again later."""


@dataclass(frozen=True)
class Unsettled:
    """What an actor wants done with an attempt that was not confirmed.

    Attributes:
        reconcile: asks the provider; None for nobody to ask.
        is_retried: the call is made again without asking.
    """

    reconcile: Callable[..., Any] | None
    is_retried: bool

    @classmethod
    def of(cls, actor: Actor[..., Any]) -> Unsettled:
        """Read an actor's options.

        Raises:
            DeclarationError: one of them is wrong.
        """
        reconcile, on_unknown = actor.options.get("reconcile"), actor.options.get("on_unknown")
        kind = "async def" if coroutine_of(actor) is not None else "def"
        is_own_kind = callable(reconcile) and iscoroutinefunction(reconcile) is (kind == "async def")
        if reconcile is not None and not is_own_kind:
            raise DeclarationError(
                f"actor {actor.actor_name!r}: expected reconcile to be a function with the actor's "
                f"parameters, `{kind}` as it is, got: {reconcile!r}; let it return a Reconciled"
            )
        if on_unknown not in (None, RETRY):
            raise DeclarationError(
                f"actor {actor.actor_name!r}: expected on_unknown to be 'retry', got: {on_unknown!r}; leave "
                "it out and an unknown outcome becomes a dead letter"
            )
        if reconcile is not None and on_unknown is not None:
            raise DeclarationError(
                f"actor {actor.actor_name!r}: expected reconcile or on_unknown, got: both; leave on_unknown "
                "out, as a provider that can be asked need not be called blindly"
            )
        return cls(reconcile, on_unknown == RETRY)

    def unknown(self, entry: Entry, story: str) -> UnknownOutcome:
        """Return what ends a job whose effect may have taken place.

        Parameters:
            entry: the job's row.
            story: what is known about the attempt.
        """
        return UnknownOutcome(
            f"expected to know whether the effect with idempotency key {entry.key!r} took place, got: "
            f"{story}; look that key up at the provider, and see `jobsctl key show {quote(entry.key)}`",
            is_retried=self.reconcile is not None,
        )


def read_answer(answer: object) -> Reconciled:
    """Return what a `reconcile=` said.

    Raises:
        ValueError: it is none of the answers.
    """
    if isinstance(answer, str) and answer in set(Reconciled):
        return Reconciled(answer)
    raise ValueError(
        f"expected reconcile to return one of {', '.join(Reconciled)}, got: {answer!r}; return a Reconciled"
    )
