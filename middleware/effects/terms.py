"""On which terms do an actor's jobs run in the ledger? What its threads and its coroutines have in common."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..errors import Invalid, LedgerViolation, Snooze
from ..store import Store
from ..transport.broker import JobBroker
from ..transport.delivery import Delivery, current_delivery
from ..transport.outcome import DUPLICATE
from .databases import CommitUnknown, Database
from .entry import Entry, Limits
from .following import asks
from .keyed import KeyedActor
from .lifetimes import free_in
from .outbox.outbox import Outbox
from .recovery import spent_by
from .transaction import LedgerTransaction
from .watermark import Watermark

_MILLISECOND: Final = timedelta(milliseconds=1)
_UNREACHABLE: Final = timedelta(seconds=5)
"""How long a job is put off whose commit nobody can ask about."""


class Terms:
    """How one keyed actor's jobs run.

    Parameters:
        keyed: the actor.
        broker: knows its jobs' time limits.
        store: where the ledger is.
        database: the ledger's statements.
        wait: for a running twin, or for the turn to write.
        grace: how long past its time limit a job may live.
        outbox: takes what follows a job.
        watermark: which jobs the ledger has forgotten.
    """

    def __init__(
        self,
        keyed: KeyedActor,
        broker: JobBroker,
        store: Store,
        database: Database,
        wait: timedelta,
        grace: timedelta,
        outbox: Outbox,
        watermark: Watermark,
    ) -> None:
        self.keyed = keyed
        self.store = store
        self.database = database
        self.wait = wait
        self._broker = broker
        self._grace = grace
        self._outbox = outbox
        self._watermark = watermark

    def entry(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Entry:
        """Return the row of the job that runs, or of a direct call.

        Raises:
            Invalid: its arguments or options are not those of a keyed job.
        """
        delivery = current_delivery()
        if delivery is not None and self._is_own(delivery) and delivery.options:
            reason = self.keyed.refusal(delivery.options)
            if reason:
                raise Invalid(reason)
        try:
            return self.keyed.entry(args, kwargs, "direct" if delivery is None else delivery.message_id)
        except ValueError as error:
            raise Invalid(str(error)) from None

    def open(self, transaction: LedgerTransaction, entry: Entry) -> bool:
        """Begin a job's transaction with its row; False if the job has been done.

        Raises:
            KeyBusy, KeyConflict, sqlalchemy.exc.DBAPIError: see `LedgerTransaction`.
            Unprovable: it may have been done.
        """
        is_new = transaction.open(entry, self.limits())
        if is_new:
            self.prove(transaction.session.connection, entry)
        return is_new

    def prove(self, connect: Callable[[], Connection], entry: Entry) -> None:
        """Refuse the job that runs, and has no row but its own, if it may have had one; see `Watermark`.

        A direct call outside any job begins now, and is as young as can be.
        """
        delivery = current_delivery()
        if delivery is not None:
            self._watermark.check(connect, entry.key, delivery.message_timestamp)

    def limits(self, wait: timedelta | None = None) -> Limits:
        """Return how long the job that runs may be held up; `wait` stands in for the ledger's own."""
        delivery = current_delivery()
        options = delivery.options if delivery is not None and self._is_own(delivery) else {}
        longest = self._broker.time_limit_of(self.keyed.name, options) + self._grace
        wait = self.wait if wait is None else wait
        return Limits(wait_ms=max(1, wait // _MILLISECOND), idle_ms=max(1, longest // _MILLISECOND))

    def duplicate(self) -> None:
        """Note that the job that runs has been done before."""
        delivery = current_delivery()
        if delivery is not None and self._is_own(delivery):
            delivery.outcome = DUPLICATE
            delivery.is_followed = True

    def follow(self, transaction: LedgerTransaction, result: Any) -> None:
        """Write what follows the job that runs, just before its commit, and free its `job_id`.

        The last step of all: only the commit itself may still fail, because a group's barrier, which is not
        part of the transaction, has then counted the job.

        Raises:
            Exception: what follows cannot be sent; the job must not complete.
        """
        delivery = current_delivery()
        if delivery is None or not self._is_own(delivery):
            return
        self.free(transaction)
        if not (self.keyed.is_followed or asks(delivery.options)):
            return
        transaction.flush()
        for publication, delay_ms in self._broker.following(delivery, result):
            self._outbox.add(transaction.session, self._broker, [publication], delay_ms)

    def free(self, transaction: LedgerTransaction) -> None:
        """Free the `job_id` of the job that runs with its commit.

        Raises:
            LedgerViolation, sqlalchemy.exc.DBAPIError: as the transaction's `flush`.
        """
        delivery = current_delivery()
        if delivery is not None and self._is_own(delivery) and "job_id" in delivery.options:
            transaction.flush()
            free_in(transaction.session, delivery)

    def busy(self, entry: Entry, wait: timedelta | None = None) -> Snooze:
        """Return what puts a job off whose twin is running; `wait` is how long it has waited."""
        wait = self.wait if wait is None else wait
        what = (
            "another job is writing" if self.store.is_sqlite else f"a job with key {entry.key!r} is running"
        )
        return Snooze(self.wait * random.uniform(1, 2), f"{what}; waited {wait.total_seconds():g} s")

    def resolve(self, entry: Entry, unknown: CommitUnknown) -> bool:
        """Find out what became of a commit.

        Returns:
            True: this job's effect is there. False: a twin's is.

        Raises:
            Snooze: the database does not answer.
            sqlalchemy.exc.DBAPIError: nothing was committed; the lost connection's error.
        """
        try:
            message_id = spent_by(self.store, entry)
        except DBAPIError as error:
            raise Snooze(
                _UNREACHABLE,
                f"the connection was lost during COMMIT and the database does not answer: {error.orig}",
            ) from error
        if message_id is None:
            raise unknown.error
        return message_id == entry.message_id

    def mixed(self, caller: str, called: str) -> LedgerViolation:
        """Return what is wrong with a direct call between a thread and a coroutine."""
        return LedgerViolation(
            f"actor {self.keyed.name!r}: expected a direct call from its own kind, got: `{called}` called "
            f"from `{caller}`, whose transaction it cannot join; make both the same, or send it"
        )

    def _is_own(self, delivery: Delivery) -> bool:
        """Whether the delivery is for this actor, and not for one that calls it directly."""
        return delivery.actor_name == self.keyed.name
