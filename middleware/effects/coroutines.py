"""How does an `async def` actor with an idempotency key run? As a `def` one does, on the event loop."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from ..transport.wrapping import Coroutine, Function
from .awaiting import in_thread, to_its_end
from .databases import CommitUnknown, KeyBusy
from .entry import Entry
from .session import current, open_async_session, sync_part
from .terms import Terms
from .transaction import LedgerTransaction


def in_transaction(terms: Terms, function: Coroutine) -> Coroutine:
    """Return the actor's function, run in the transaction that holds its ledger row; see `threads`."""

    async def run(*args: Any, **kwargs: Any) -> Any:
        entry = terms.entry(args, kwargs)
        outer = current.get()
        if outer is not None and outer.store is terms.store:
            return await _join(terms, outer, entry, function, args, kwargs)
        if not terms.store.is_sqlite:
            return await _transact(terms, entry, function, args, kwargs)
        if not await terms.store.writers.acquire_async(terms.wait.total_seconds()):
            raise terms.busy(entry)
        try:
            return await _transact(terms, entry, function, args, kwargs)
        finally:
            terms.store.writers.release()

    return run


def callable_on_the_loop(blocking: Function, coroutine: Coroutine) -> Function:
    """Return a function that a coroutine can await, and that any other caller waits in.

    Dramatiq's own blocks its thread until the event loop has run the coroutine: on the loop itself, for ever.
    """

    @functools.wraps(coroutine)
    def call(*args: Any, **kwargs: Any) -> Any:
        if asyncio._get_running_loop() is None:
            return blocking(*args, **kwargs)
        return coroutine(*args, **kwargs)

    return call


async def _transact(terms: Terms, entry: Entry, function: Coroutine, args: Any, kwargs: Any) -> Any:
    session = open_async_session(terms.store.async_engine)
    transaction = LedgerTransaction(terms.store, terms.database, sync_part(session), session)
    try:
        if not await session.run_sync(lambda _: terms.open(transaction, entry)):
            return terms.duplicate()
        token = current.set(transaction)
        try:
            result = await function(*args, **kwargs)
        finally:
            current.reset(token)
        await to_its_end(session.run_sync(lambda _: _commit(terms, transaction, result)))
    except KeyBusy:
        raise terms.busy(entry) from None
    except CommitUnknown as unknown:
        is_ours = await in_thread(terms.resolve, entry, unknown)
        return result if is_ours else terms.duplicate()
    finally:
        await to_its_end(session.run_sync(lambda _: transaction.close()))
    return result


def _commit(terms: Terms, transaction: LedgerTransaction, result: Any) -> None:
    terms.follow(transaction, result)
    transaction.commit()


async def _join(
    terms: Terms, outer: LedgerTransaction, entry: Entry, function: Coroutine, args: Any, kwargs: Any
) -> Any:
    session = outer.async_session
    if session is None:
        raise terms.mixed("def", "async def")
    async with session.begin_nested():
        try:
            if not await session.run_sync(lambda _: outer.join(entry, terms.limits())):
                return None
        except KeyBusy:
            raise terms.busy(entry) from None
        result = await function(*args, **kwargs)
        await session.run_sync(lambda _: outer.check())
    return result
