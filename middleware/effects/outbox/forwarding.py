"""How does a claimed row get to the broker, once, whatever happens to broker, database and process meanwhile?

It stays claimed while it is on its way, for as long as that takes: a broker that is away is waited for, and
nobody else publishes the row. It is removed after the confirm. Nothing is written after a claim has run out,
as after a process was frozen. A crash between the confirm and the removal publishes it twice, as does a
connection that is lost between a publish and its confirm: delivery is at-least-once.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from ...logs import get_logger
from ...store import Store
from ...transport.enqueueing import EnqueueingBroker
from ...transport.publication import DELAYED, Result, Ticket
from . import rows
from .rows import Claimed

log = get_logger(__name__)

MOST_A_QUEUE: Final = 1000
"""Rows of one queue on their way at most: what a queue that takes none leaves in memory."""
RENEW_SECONDS: Final = 1.5
_SHOWN: Final = 5
"""Message ids in a line of the log at most."""


class Forwarding:
    """The rows that this process has claimed; used by one thread, told by others how publishes ended.

    Parameters:
        store: where the outbox is.
        broker: publishes.
        owner: whose claims these are.
        tell: called by the publisher's thread with the row's id when a publish ended; the owner of this
            passes it on to `ended`, on its own thread.
        removed: called with the number of rows that were confirmed and removed.
    """

    def __init__(
        self,
        store: Store,
        broker: EnqueueingBroker,
        owner: str,
        tell: Callable[[UUID], None],
        removed: Callable[[int], None],
    ) -> None:
        self._store = store
        self._broker = broker
        self._owner = owner
        self._tell = tell
        self._removed = removed
        self._flights: dict[UUID, tuple[Claimed, Ticket]] = {}
        self._confirmed: list[UUID] = []
        self._refused: list[tuple[Claimed, str]] = []
        self._renewed_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way and nothing is left to be noted."""
        return not (self._flights or self._confirmed or self._refused)

    def __len__(self) -> int:
        """How many rows are on their way."""
        return len(self._flights)

    def full(self) -> list[str]:
        """Return the queues of which so many rows are on their way that no more may be."""
        counts = Counter(row.queue for row, _ in self._flights.values())
        return [queue for queue, number in counts.items() if number >= MOST_A_QUEUE]

    def begin(self, claimed: Sequence[Claimed]) -> None:
        """Publish rows."""
        tickets = []
        for row in claimed:
            if row.id in self._flights:
                continue
            try:
                tickets.append(self._ticket(row))
            except Exception as error:  # one that nobody can publish must not keep the others
                self._refused.append((row, str(error) or repr(error)))
        try:
            if tickets:
                self._broker.submit(tickets)
        except Exception as error:
            for ticket in tickets:
                ticket.end(Result.REFUSED, str(error) or repr(error))

    def _ticket(self, row: Claimed) -> Ticket:
        if row.queue not in self._broker.specs:
            raise ValueError(f"expected its queue to be declared here, got: {row.queue!r}")
        publication = row.publication()
        if publication.ticks.bit_length() > self._broker.levels:  # the broker would close the channel over it
            raise ValueError(
                "expected it to be due within JOBS_MAX_DELAY as it is here, got: a later time; raise the "
                "setting again, or it waits in the outbox until it is"
            )
        ticket = Ticket(publication, lambda _: self._tell(row.id), wanted=lambda: _is_wanted(row, ticket))
        self._flights[row.id] = (row, ticket)
        return ticket

    def ended(self, row_id: UUID) -> None:
        """Take note of a publish that ended."""
        row, ticket = self._flights.pop(row_id, (None, None))
        if row is None or ticket is None:
            return
        if ticket.result is Result.CONFIRMED:
            self._confirmed.append(row_id)
        elif ticket.result is Result.UNKNOWN:
            self._refused.append((row, f"may be stored: {ticket.reason}"))
        elif time.monotonic() < row.until:  # else it was not written because the claim had run out
            self._refused.append((row, ticket.reason))

    def note(self) -> None:
        """Write down how publishes ended, and keep the claims of those that have not.

        Raises:
            sqlalchemy.exc.SQLAlchemyError, TimeoutError: the database does not answer; call it again.
        """
        if self._confirmed:
            self._with(rows.remove, self._confirmed)
            self._removed(len(self._confirmed))
            self._confirmed = []
        self._postpone_refused()
        if self._flights and time.monotonic() - self._renewed_at > RENEW_SECONDS:
            self._renew()

    def _postpone_refused(self) -> None:
        """Many at once, in the database and in the log: a full queue refuses all that come."""
        alike: defaultdict[tuple[str, str, int], list[Claimed]] = defaultdict(list)
        for row, problem in self._refused:
            alike[row.queue, problem, row.refusals].append(row)
        for (queue, problem, refusals), refused in alike.items():
            with self._store.stateless() as connection:
                seconds = rows.postpone(
                    connection, [row.id for row in refused], refusals, problem, self._owner
                )
            log.error(
                "outbox.not_published",
                queue=queue,
                jobs=len(refused),
                message_ids=[row.message_id for row in refused[:_SHOWN]],
                reason=problem,
                tries=refusals + 1,
                again_in_seconds=seconds,
            )
        self._refused = []

    def _renew(self) -> None:
        with self._store.stateless() as connection:
            renewed = rows.renew(connection, list(self._flights), self._owner)
        for row_id, until in renewed.items():
            self._flights[row_id][0].until = until
        self._renewed_at = time.monotonic()

    def give_up(self) -> None:
        """Let others publish what is not written yet; what is written stays claimed for its confirm.

        Raises:
            sqlalchemy.exc.SQLAlchemyError, TimeoutError: the database does not answer; the claims run out.
        """
        unwritten = [
            row_id
            for row_id, (_, ticket) in self._flights.items()
            if ticket.result is None and ticket.claimed.acquire(blocking=False)
        ]
        for row_id in unwritten:
            del self._flights[row_id]
        if unwritten:
            self._with(partial(rows.release, owner=self._owner), unwritten)

    def _with(self, statement: Callable[..., None], ids: list[UUID]) -> None:
        with self._store.stateless() as connection:
            statement(connection, ids)


def _is_wanted(row: Claimed, ticket: Ticket) -> bool:
    """Asked just before the write: whether the claim still holds. A delay may have become shorter by now."""
    if ticket.publication.place == DELAYED:
        ticket.publication = row.publication()
    return time.monotonic() < row.until
