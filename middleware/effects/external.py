"""How does an actor with `effect="external"` run? Its intent is committed, it calls, and it is confirmed.

What happens in between is known to nobody but the provider: an attempt that was begun and not confirmed is
never repeated blindly.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from dramatiq import Actor
from sqlalchemy.exc import DBAPIError

from ..errors import Snooze
from ..logs import get_logger
from ..transport.broker import JobBroker
from ..transport.evidence import describe, type_name
from ..transport.wrapping import coroutine_of, function_of
from .asking import asks_for_key
from .attempt import Attempt, Overtaken
from .entry import Entry
from .intents import Busy, Open, Spent, Taken, Token
from .leases import Leases
from .reconciling import Reconciled, Unsettled
from .terms import Terms

log = get_logger(__name__)

_OVERTAKEN: Final = timedelta(seconds=1)


class External:
    """How one actor's jobs run.

    Parameters:
        terms: the actor's.
        actor: its options say what happens with unknown outcomes.
        broker: has its time limit.
        leases: the process's.

    Attributes:
        is_async: whether it is an `async def`.
        is_careful: whether it asks for its key before it calls; see `asks_for_key`.
        intents: the attempts.
        leases: those of this process.
        reconcile: asks the provider, within the actor's time limit; None for nobody to ask.

    Raises:
        DeclarationError: an option is wrong.
    """

    def __init__(self, terms: Terms, actor: Actor[..., Any], broker: JobBroker, leases: Leases) -> None:
        self.terms = terms
        self.intents = leases.intents
        self.is_async = coroutine_of(actor) is not None
        self.is_careful = asks_for_key(function_of(actor))
        self.leases = leases
        self._unsettled = Unsettled.of(actor)
        self.reconcile: Callable[..., Any] | None = None
        if self._unsettled.reconcile is not None:
            self.reconcile = broker.limited(actor, self._unsettled.reconcile)

    def take(self, entry: Entry) -> Taken | Spent | Open:
        """Begin an attempt.

        Raises:
            Snooze: another worker makes one now.
        """
        return _unless_busy(
            self.intents.take(entry, is_careful=self.is_careful, prove=self.terms.prove), entry
        )

    def take_again(self, token: Token) -> None:
        """Let the next attempt follow one that was not confirmed."""
        self.intents.release(token, self._why_again())

    def end(self, attempt: Attempt, error: BaseException) -> BaseException:
        """Note how an attempt failed, and return what its job is to fail with."""
        if attempt.is_written:
            return error
        may_have_happened = attempt.may_have_happened(error)
        note = self.intents.give_up if may_have_happened else self.intents.release
        why = "it was overtaken" if isinstance(error, Overtaken) else _in_words(error)
        try:
            note(attempt.token, why)
        except (DBAPIError, TimeoutError) as unwritten:  # then its lease runs out instead
            log.warning("effects.end_not_noted", key=attempt.entry.key, error=repr(unwritten))
        if isinstance(error, Overtaken):
            return Snooze(_OVERTAKEN, f"another worker has taken over the attempt at {attempt.entry.key!r}")
        if (
            not may_have_happened
            or self._unsettled.is_retried
            or isinstance(error, KeyboardInterrupt | SystemExit)
        ):
            return error
        done = "the call was made, and its confirmation failed" if attempt.has_called else "the call failed"
        return self._unsettled.unknown(attempt.entry, f"{done}: {why}")

    def has_to_ask(self, asking: Attempt, story: str) -> bool:
        """Return whether the provider is to be asked; False if the call is made again without asking.

        Raises:
            UnknownOutcome: there is nobody to ask.
        """
        if self._unsettled.is_retried:
            return False
        if self.reconcile is None:
            raise self._unsettled.unknown(asking.entry, f"no confirmation of {story}")
        return True

    def is_done(self, asking: Attempt, answer: Reconciled, story: str) -> bool:
        """Return whether the effect has taken place.

        Raises:
            UnknownOutcome: the provider does not know either.
        """
        if asking.is_written or asking.is_lost:
            return True
        if answer is Reconciled.UNKNOWN:
            raise self._unsettled.unknown(
                asking.entry, f"no confirmation of {story}; the provider cannot say"
            )
        return False

    def not_settled(self, entry: Entry, story: str, error: Exception) -> Exception:
        """Return what ends a job whose provider could not be asked."""
        if isinstance(error, Snooze):
            return error
        return self._unsettled.unknown(
            entry, f"no confirmation of {story}; the provider was not asked: {_in_words(error)}"
        )

    def _why_again(self) -> str:
        return (
            "on_unknown='retry'" if self._unsettled.is_retried else "the provider says that nothing was done"
        )


def _unless_busy(taken: Taken | Spent | Busy | Open, entry: Entry) -> Taken | Spent | Open:
    if isinstance(taken, Busy):
        raise Snooze(_until_looked_again(taken), f"another worker makes an attempt at {entry.key!r}")
    return taken


def _until_looked_again(busy: Busy) -> timedelta:
    """Return about as long as the attempt has been under way, but not beyond its lease: most end soon."""
    until_dead = busy.left + timedelta(seconds=random.uniform(0.1, 1))
    return min(until_dead, busy.age + timedelta(seconds=random.uniform(0.5, 1.5)))


def unless_open(taken: Taken | Spent | Open) -> Taken | Spent:
    """Return what an attempt came to that follows one which was settled."""
    if isinstance(taken, Open):  # another worker asked as well, made an attempt, and failed
        raise Snooze(_OVERTAKEN, f"not known: {taken.story}")
    return taken


def _in_words(error: BaseException) -> str:
    return " ".join(f"{type_name(error)}: {describe(error)}".split())
