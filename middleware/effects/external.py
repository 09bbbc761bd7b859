"""How does an actor with `effect="external"` run? Its intent is committed, it calls, and it is confirmed.

What happens in between is known to nobody but the provider: an attempt that was begun and not confirmed is
never repeated blindly.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from dramatiq import Actor
from sqlalchemy.exc import DBAPIError

from ..errors import Snooze
from ..logs import get_logger
from ..transport.broker import JobBroker
from ..transport.evidence import describe, type_name
from ..transport.wrapping import Coroutine, Function, coroutine_of, function_of
from .attempt import Attempt, Overtaken
from .awaiting import in_thread
from .effect import Lost
from .entry import Entry
from .intents import Busy, Open, Spent, Taken
from .late import check_outside, declared
from .leases import Leases
from .reconciling import Reconciled, Unsettled, asks_for_key, read_answer
from .terms import Terms

log = get_logger(__name__)

_PAUSES_SECONDS: Final = (0.2, 1.0, 3.0)
"""Before a confirmation that the database did not take is tried again: only this is left of a job."""
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

    Raises:
        DeclarationError: an option is wrong.
    """

    def __init__(self, terms: Terms, actor: Actor[..., Any], broker: JobBroker, leases: Leases) -> None:
        self.terms = terms
        self.intents = leases.intents
        self.is_async = coroutine_of(actor) is not None
        self.is_careful = asks_for_key(function_of(actor))
        self._leases = leases
        self._unsettled = Unsettled.of(actor)
        self._reconcile: Callable[..., Any] | None = None
        if self._unsettled.reconcile is not None:
            self._reconcile = broker.limited(actor, self._unsettled.reconcile)

    # --- in a thread ---

    def in_a_thread(self, function: Function) -> Function:
        """Return a `def` actor's function, run between its intent and its confirmation."""

        def run(*args: Any, **kwargs: Any) -> Any:
            check_outside(self.terms)
            entry = self.terms.entry(args, kwargs)
            taken = self._take(entry)
            if isinstance(taken, Open):
                taken = self._settle(entry, taken, args, kwargs)
            if not isinstance(taken, Taken):
                return self.terms.duplicate()
            return self._call(Attempt(self, entry, taken.fence), function, args, kwargs)

        return run

    def _take(self, entry: Entry) -> Taken | Spent | Open:
        return _unless_busy(self.intents.take(entry, is_careful=self.is_careful), entry)

    def _settle(self, entry: Entry, open_: Open, args: Any, kwargs: Any) -> Taken | Spent:
        asking = Attempt(self, entry, open_.fence, is_call=False)
        if self._ask_provider(asking, open_.story):
            assert self._reconcile is not None
            try:
                with declared(asking):
                    answer = read_answer(self._reconcile(*args, **kwargs))
                if answer is Reconciled.DONE and asking.needs_confirmation():
                    self._confirm(asking)
            except Lost:
                return Spent()
            except Exception as error:
                raise self._not_settled(entry, open_.story, error) from error
            finally:
                asking.close()
            if self._is_done(asking, answer, open_.story):
                return Spent()
        self.intents.release(asking.token, self._why_again())
        return _unless_open(self._take(entry))

    def _call(self, attempt: Attempt, function: Function, args: Any, kwargs: Any) -> Any:
        result = None
        self._leases.hold(attempt.token)
        try:
            try:
                with declared(attempt):
                    result = function(*args, **kwargs)
            finally:
                attempt.close()
            if attempt.needs_confirmation():
                self._confirm(attempt)
        except Lost:
            pass
        except BaseException as error:
            meaning = self._end(attempt, error)
            if meaning is error:
                raise
            raise meaning from error
        finally:
            self._leases.drop(attempt.token)
        if attempt.is_written:
            return result
        self.intents.confirm_late(attempt.token, attempt.result)
        return self.terms.duplicate()

    def _confirm(self, attempt: Attempt) -> None:
        for pause in _PAUSES_SECONDS:
            try:
                with attempt:
                    return
            except (DBAPIError, Snooze) as error:
                log.warning("effects.confirmation_failed", key=attempt.entry.key, error=repr(error))
            threading.Event().wait(pause)
        with attempt:
            return

    # --- in a coroutine ---

    def on_the_loop(self, function: Coroutine) -> Coroutine:
        """Return an `async def` actor's function; see `in_a_thread`."""

        async def run(*args: Any, **kwargs: Any) -> Any:
            check_outside(self.terms)
            entry = self.terms.entry(args, kwargs)
            taken = await in_thread(self._take, entry)
            if isinstance(taken, Open):
                taken = await self._settle_async(entry, taken, args, kwargs)
            if not isinstance(taken, Taken):
                return self.terms.duplicate()
            return await self._call_async(Attempt(self, entry, taken.fence), function, args, kwargs)

        return run

    async def _settle_async(self, entry: Entry, open_: Open, args: Any, kwargs: Any) -> Taken | Spent:
        asking = Attempt(self, entry, open_.fence, is_call=False)
        if self._ask_provider(asking, open_.story):
            assert self._reconcile is not None
            try:
                with declared(asking):
                    answer = read_answer(await self._reconcile(*args, **kwargs))
                if answer is Reconciled.DONE and asking.needs_confirmation():
                    await self._confirm_async(asking)
            except Lost:
                return Spent()
            except Exception as error:
                raise self._not_settled(entry, open_.story, error) from error
            finally:
                await asking.close_async()
            if self._is_done(asking, answer, open_.story):
                return Spent()
        await in_thread(self.intents.release, asking.token, self._why_again())
        return _unless_open(await in_thread(self._take, entry))

    async def _call_async(self, attempt: Attempt, function: Coroutine, args: Any, kwargs: Any) -> Any:
        result = None
        self._leases.hold(attempt.token)
        try:
            try:
                with declared(attempt):
                    result = await function(*args, **kwargs)
            finally:
                await attempt.close_async()
            if attempt.needs_confirmation():
                await self._confirm_async(attempt)
        except Lost:
            pass
        except BaseException as error:
            meaning = await in_thread(self._end, attempt, error)
            if meaning is error:
                raise
            raise meaning from error
        finally:
            self._leases.drop(attempt.token)
        if attempt.is_written:
            return result
        await in_thread(self.intents.confirm_late, attempt.token, attempt.result)
        return self.terms.duplicate()

    async def _confirm_async(self, attempt: Attempt) -> None:
        for pause in _PAUSES_SECONDS:
            try:
                async with attempt:
                    return
            except (DBAPIError, Snooze) as error:
                log.warning("effects.confirmation_failed", key=attempt.entry.key, error=repr(error))
            await asyncio.sleep(pause)
        async with attempt:
            return

    # --- what both have in common ---

    def _end(self, attempt: Attempt, error: BaseException) -> BaseException:
        """Note how an attempt failed, and return what its job is to fail with."""
        if attempt.is_written:
            return error
        may_have_happened = attempt.may_have_happened(error)
        note = self.intents.give_up if may_have_happened else self.intents.release
        why = "it was overtaken" if isinstance(error, Overtaken) else f"{type_name(error)}: {describe(error)}"
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

    def _ask_provider(self, asking: Attempt, story: str) -> bool:
        """Return whether the provider is to be asked; False if the call is made again without asking.

        Raises:
            UnknownOutcome: there is nobody to ask.
        """
        if self._unsettled.is_retried:
            return False
        if self._reconcile is None:
            raise self._unsettled.unknown(asking.entry, f"no confirmation of {story}")
        return True

    def _is_done(self, asking: Attempt, answer: Reconciled, story: str) -> bool:
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

    def _not_settled(self, entry: Entry, story: str, error: Exception) -> Exception:
        if isinstance(error, Snooze):
            return error
        why = f"{type_name(error)}: {describe(error)}"
        return self._unsettled.unknown(
            entry, f"no confirmation of {story}; the provider was not asked: {why}"
        )

    def _why_again(self) -> str:
        return (
            "on_unknown='retry'" if self._unsettled.is_retried else "the provider says that nothing was done"
        )


def _unless_busy(taken: Taken | Spent | Busy | Open, entry: Entry) -> Taken | Spent | Open:
    if isinstance(taken, Busy):
        wait = taken.left + timedelta(seconds=random.uniform(0.1, 1))
        raise Snooze(wait, f"another worker makes an attempt at {entry.key!r}")
    return taken


def _unless_open(taken: Taken | Spent | Open) -> Taken | Spent:
    if isinstance(taken, Open):  # another worker asked as well, made an attempt, and failed
        raise Snooze(_OVERTAKEN, f"not known: {taken.story}")
    return taken
