"""How does a `def` actor with `effect="external"` run?"""

from __future__ import annotations

import threading
from typing import Any, Final

from sqlalchemy.exc import DBAPIError

from ..errors import Snooze
from ..logs import get_logger
from ..transport.wrapping import Function
from .attempt import Attempt
from .effect import Lost
from .entering import check_outside, declared
from .entry import Entry
from .external import External, unless_open
from .intents import Open, Spent, Taken
from .reconciling import Reconciled, read_answer

log = get_logger(__name__)

PAUSES_SECONDS: Final = (0.2, 1.0, 3.0)
"""Before a confirmation that the database did not take is tried again: only this is left of a job."""


def in_a_thread(external: External, function: Function) -> Function:
    """Return the actor's function, run between its intent and its confirmation.

    A job whose effect has taken place returns None.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        check_outside(external.terms)
        entry = external.terms.entry(args, kwargs)
        taken = external.take(entry)
        if isinstance(taken, Open):
            taken = _settle(external, entry, taken, args, kwargs)
        if not isinstance(taken, Taken):
            return external.terms.duplicate()
        return _call(external, Attempt(external, entry, taken.fence), function, args, kwargs)

    return run


def _settle(external: External, entry: Entry, earlier: Open, args: Any, kwargs: Any) -> Taken | Spent:
    """Find out about an attempt that was not confirmed, and begin the next one if it did nothing."""
    asking = Attempt(external, entry, earlier.fence, is_call=False)
    if external.has_to_ask(asking, earlier.story):
        assert external.reconcile is not None
        try:
            with declared(asking):
                answer = read_answer(external.reconcile(*args, **kwargs))
            if answer is Reconciled.DONE and asking.needs_confirmation():
                _confirm(asking)
        except Lost:
            return Spent()
        except Exception as error:
            raise external.not_settled(entry, earlier.story, error) from error
        finally:
            asking.close()
        if external.is_done(asking, answer, earlier.story):
            return Spent()
    external.take_again(asking.token)
    return unless_open(external.take(entry))


def _call(external: External, attempt: Attempt, function: Function, args: Any, kwargs: Any) -> Any:
    result = None
    external.leases.hold(attempt.token)
    try:
        try:
            with declared(attempt):
                result = function(*args, **kwargs)
        finally:
            attempt.close()
        if attempt.needs_confirmation():
            _confirm(attempt)
    except Lost:
        pass
    except BaseException as error:
        meaning = external.end(attempt, error)
        if meaning is error:
            raise
        raise meaning from error
    finally:
        external.leases.drop(attempt.token)
    if attempt.is_written:
        return result
    external.intents.confirm_late(attempt.token, attempt.result)
    return external.terms.duplicate()


def _confirm(attempt: Attempt) -> None:
    for pause in PAUSES_SECONDS:
        try:
            with attempt:
                return
        except (DBAPIError, Snooze) as error:
            log.warning("effects.confirmation_failed", key=attempt.entry.key, error=repr(error))
        threading.Event().wait(pause)
    with attempt:
        return
