"""How does a `def` actor with an idempotency key run?"""

from __future__ import annotations

from typing import Any

from ..transport.wrapping import Function
from .databases import CommitUnknown, KeyBusy
from .entry import Entry
from .session import current, open_session
from .terms import Terms
from .transaction import LedgerTransaction


def in_transaction(terms: Terms, function: Function) -> Function:
    """Return the actor's function, run in the transaction that holds its ledger row.

    A direct call inside another keyed actor joins that one's transaction as a savepoint; any other opens
    its own. A job that has been done returns None.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        entry = terms.entry(args, kwargs)
        outer = current.get()
        if outer is not None and outer.store is terms.store:
            return _join(terms, outer, entry, function, args, kwargs)
        if not terms.store.is_sqlite:
            return _transact(terms, entry, function, args, kwargs)
        if not terms.store.writers.acquire(terms.wait.total_seconds()):
            raise terms.busy(entry)
        try:
            return _transact(terms, entry, function, args, kwargs)
        finally:
            terms.store.writers.release()

    return run


def _transact(terms: Terms, entry: Entry, function: Function, args: Any, kwargs: Any) -> Any:
    transaction = LedgerTransaction(terms.store, terms.database, open_session(terms.store.engine))
    try:
        if not terms.open(transaction, entry):
            return terms.duplicate()
        token = current.set(transaction)
        try:
            result = function(*args, **kwargs)
        finally:
            current.reset(token)
        terms.follow(transaction, result)
        transaction.commit()
    except KeyBusy:
        raise terms.busy(entry) from None
    except CommitUnknown as unknown:
        return result if terms.resolve(entry, unknown) else terms.duplicate()
    finally:
        transaction.close()
    return result


def _join(
    terms: Terms, outer: LedgerTransaction, entry: Entry, function: Function, args: Any, kwargs: Any
) -> Any:
    if outer.async_session is not None:
        raise terms.mixed("async def", "def")
    with outer.session.begin_nested():
        try:
            if not outer.join(entry, terms.limits()):
                return None
        except KeyBusy:
            raise terms.busy(entry) from None
        result = function(*args, **kwargs)
        outer.check()
    return result
