"""Which sends are written in the database, not published? Keyed actors' own, and those with a `job_id`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeAlias

from dramatiq import Message

from ..errors import NotEnqueued
from ..store import Store
from ..transport.broker import JobBroker
from ..transport.publication import Publication
from .awaiting import in_thread
from .outbox.joining import is_published_now
from .outbox.outbox import Outbox
from .session import committing, current
from .transaction import LedgerTransaction

Messages: TypeAlias = list[Message[Any]]
Publications: TypeAlias = list[Publication]


class Joining:
    """Takes jobs in the broker's place.

    Parameters:
        store: the database of the keyed actors' transactions.
        outbox: what jobs are written in.
    """

    def __init__(self, store: Store, outbox: Outbox) -> None:
        self._store = store
        self._outbox = outbox

    def take(
        self, broker: JobBroker, messages: Messages, publications: Publications, delay_ms: int | None
    ) -> Messages | None:
        """Write what a keyed actor sends in its own transaction, and jobs with a `job_id` in any case.

        A thread that the actor starts, also one of `asyncio.to_thread`, has no part in its transaction.

        Returns:
            The messages that carry the jobs; None if they are to be published.

        Raises:
            NotEnqueued: the transaction is being committed, too many jobs wait in the outbox, or a `job_id`
                cannot be taken.
        """
        transaction = self._transaction()
        if transaction is None:
            has_ids = _have_ids(messages)
            return self._outbox.submit(broker, messages, publications, delay_ms) if has_ids else None
        if transaction.async_session is not None and _have_ids(messages):
            raise NotEnqueued(
                "expected a job with a job_id to be awaited in an `async def` actor with an idempotency_key, "
                "got: send_with_options(); await send_with_options_async(…)"
            )
        return self._outbox.take(transaction.session, broker, messages, publications, delay_ms)

    def take_async(
        self, broker: JobBroker, messages: Messages, publications: Publications, delay_ms: int | None
    ) -> Awaitable[Messages] | None:
        """Do as `take`, and return what to await."""
        transaction = self._transaction()
        if transaction is None:
            if not _have_ids(messages):
                return None
            return in_thread(self._outbox.submit, broker, messages, publications, delay_ms)
        if transaction.async_session is None:  # a `def` actor runs a loop in its own thread
            return _result(self._outbox.take(transaction.session, broker, messages, publications, delay_ms))
        return transaction.async_session.run_sync(self._outbox.take, broker, messages, publications, delay_ms)

    def _transaction(self) -> LedgerTransaction | None:
        """Return the transaction that the caller's sends are part of."""
        transaction = current.get() or committing.get()
        if transaction is None or transaction.store is not self._store or is_published_now():
            return None
        return transaction if transaction.takes_sends() else None


async def _result(messages: Messages) -> Messages:
    return messages


def _have_ids(messages: Messages) -> bool:
    return any("job_id" in message.options for message in messages)
