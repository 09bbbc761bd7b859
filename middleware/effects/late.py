"""How does an actor with `effect="late"` run? Outside any transaction, until it enters its effect.

Its key is looked up without a lock, so a job that has been done before is not computed again; two twins that
run at the same time both compute, and the second to enter its effect is a duplicate.
"""

from __future__ import annotations

from typing import Any

from ..transport.wrapping import Coroutine, Function
from .awaiting import in_thread
from .effect import Effect, Lost
from .entering import check_outside, declared
from .recovery import is_spent
from .terms import Terms


def in_a_thread(terms: Terms, function: Function) -> Function:
    """Return the actor's function, whose effect is a block in it. A job that has been done returns None."""

    def run(*args: Any, **kwargs: Any) -> Any:
        check_outside(terms)
        entry = terms.entry(args, kwargs)
        if is_spent(terms.store, entry, terms.prove):
            return terms.duplicate()
        effect = Effect(terms, entry, is_async=False)
        try:
            with declared(effect):
                result = function(*args, **kwargs)
        except Lost:
            return terms.duplicate()
        finally:
            effect.close()
        return result if effect.check() else terms.duplicate()

    return run


def on_the_loop(terms: Terms, function: Coroutine) -> Coroutine:
    """Return an `async def` actor's function; see `in_a_thread`."""

    async def run(*args: Any, **kwargs: Any) -> Any:
        check_outside(terms)
        entry = terms.entry(args, kwargs)
        if await in_thread(is_spent, terms.store, entry, terms.prove):
            return terms.duplicate()
        effect = Effect(terms, entry, is_async=True)
        try:
            with declared(effect):
                result = await function(*args, **kwargs)
        except Lost:
            return terms.duplicate()
        finally:
            await effect.close_async()
        return result if effect.check() else terms.duplicate()

    return run
