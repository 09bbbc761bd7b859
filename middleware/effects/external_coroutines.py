"""How does an `async def` actor with `effect="external"` run? As a `def` one does, on the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy.exc import DBAPIError

from ..errors import Snooze
from ..logs import get_logger
from ..transport.wrapping import Coroutine
from .attempt import Attempt
from .awaiting import in_thread
from .effect import Lost
from .entering import check_outside, declared
from .entry import Entry
from .external import External, unless_open
from .external_threads import PAUSES_SECONDS
from .intents import Open, Spent, Taken
from .reconciling import Reconciled, read_answer

log = get_logger(__name__)


def on_the_loop(external: External, function: Coroutine) -> Coroutine:
    """Return the actor's function, run between its intent and its confirmation; see `external_threads`."""

    async def run(*args: Any, **kwargs: Any) -> Any:
        check_outside(external.terms)
        entry = external.terms.entry(args, kwargs)
        taken = await in_thread(external.take, entry)
        if isinstance(taken, Open):
            taken = await _settle(external, entry, taken, args, kwargs)
        if not isinstance(taken, Taken):
            return external.terms.duplicate()
        return await _call(external, Attempt(external, entry, taken.fence), function, args, kwargs)

    return run


async def _settle(external: External, entry: Entry, earlier: Open, args: Any, kwargs: Any) -> Taken | Spent:
    asking = Attempt(external, entry, earlier.fence, is_call=False)
    if external.has_to_ask(asking, earlier.story):
        assert external.reconcile is not None
        try:
            with declared(asking):
                answer = read_answer(await external.reconcile(*args, **kwargs))
            if answer is Reconciled.DONE and asking.needs_confirmation():
                await _confirm(asking)
        except Lost:
            return Spent()
        except Exception as error:
            raise external.not_settled(entry, earlier.story, error) from error
        finally:
            await asking.close_async()
        if external.is_done(asking, answer, earlier.story):
            return Spent()
    await in_thread(external.take_again, asking.token)
    return unless_open(await in_thread(external.take, entry))


async def _call(external: External, attempt: Attempt, function: Coroutine, args: Any, kwargs: Any) -> Any:
    result = None
    external.leases.hold(attempt.token)
    try:
        try:
            with declared(attempt):
                result = await function(*args, **kwargs)
        finally:
            await attempt.close_async()
        if attempt.needs_confirmation():
            await _confirm(attempt)
    except Lost:
        pass
    except BaseException as error:
        meaning = await in_thread(external.end, attempt, error)
        if meaning is error:
            raise
        raise meaning from error
    finally:
        external.leases.drop(attempt.token)
    if attempt.is_written:
        return result
    await in_thread(external.intents.confirm_late, attempt.token, attempt.result)
    return external.terms.duplicate()


async def _confirm(attempt: Attempt) -> None:
    for pause in PAUSES_SECONDS:
        try:
            async with attempt:
                return
        except (DBAPIError, Snooze) as error:
            log.warning("effects.confirmation_failed", key=attempt.entry.key, error=repr(error))
        await asyncio.sleep(pause)
    async with attempt:
        return
