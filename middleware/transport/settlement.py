"""What happens with a delivery once its outcome is known? Publish first, acknowledge after.

A retry, a snooze, a dead letter and follow-up messages are published on the publisher's connection, so
that an alarm that blocks publishing does not freeze acknowledgements, and the delivery is acknowledged
when the broker has confirmed them. Until then it stays with the broker as unacknowledged: whatever
happens to this process, the job comes back.

* A delivery without a stored outcome is never acknowledged: an exception stuffed into it is classified,
  `failed` is dead, anything else is returned.
* Nothing is published or acknowledged for a delivery whose channel is gone: the broker has already put
  it back, and tags of a new channel begin at 1 again.
* A publish that is blocked or unconfirmed is held and repeated while the delivery is ours. One that is
  refused is tried a bounded number of times, alone, with its evidence cut down; then the broker is asked
  to dead-letter the original natively.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..logs import get_logger
from . import outcome as outcomes
from .copies import Copies
from .delivery import Delivery
from .outcome import Outcome
from .publication import Publication, Result, Ticket
from .sending import Outbound

log = get_logger(__name__)

_REFUSALS: Final = 4
"""Refused publishes before the original is dead-lettered by the broker itself."""
_REFUSED_PAUSE_SECONDS: Final = 0.5
_UNKNOWN_PAUSE_SECONDS: Final = 0.2
_FAILED_PAUSE_SECONDS: Final = 1.0

Decide = Callable[[Delivery, BaseException], Outcome]


class Settlement:
    """Acts on outcomes.

    Parameters:
        outbound: takes the publications.
        decide: turns an exception into an outcome, for deliveries that reach settlement undecided.
        copies: builds the publications.
    """

    def __init__(self, outbound: Outbound, decide: Decide, copies: Copies) -> None:
        self._outbound = outbound
        self._decide = decide
        self._copies = copies
        self._publishing: set[int] = set()

    @property
    def is_publishing(self) -> bool:
        """Whether a delivery waits for the confirm of its retry, dead letter or follow-ups."""
        return bool(self._publishing)

    def settle(self, delivery: Delivery) -> None:
        """Carry out a delivery's outcome. Never raises: on any failure the job goes back to its queue."""
        try:
            self._settle(delivery)
        except Exception:
            self._give_back_later(delivery)

    def _settle(self, delivery: Delivery) -> None:
        if not delivery.link.alive:
            return
        if delivery.outcome is None:
            delivery.outcome = self._undecided(delivery)
        if isinstance(delivery.outcome, outcomes.Returned):
            delivery.link.requeue(delivery.tag)
            return
        publications = self._copies.of(delivery, delivery.outcome)
        if publications:
            _Publishing(self._outbound, self._copies, delivery, publications, self).start()
        else:
            delivery.link.ack(delivery.tag)

    def _undecided(self, delivery: Delivery) -> Outcome:
        if delivery.exception is not None:
            return self._decide(delivery, delivery.exception)
        if delivery.failed:
            return outcomes.FAILED_BY_MIDDLEWARE
        return outcomes.RETURNED

    def _give_back_later(self, delivery: Delivery) -> None:
        """After a failure of the kit itself; not at once, lest the same happens in a tight loop."""
        log.critical(
            "settlement.failed", message_id=delivery.message_id, queue=delivery.queue_name, exc_info=True
        )
        self._outbound.call_later(_FAILED_PAUSE_SECONDS, lambda: delivery.link.requeue(delivery.tag))


class _Publishing:
    """The publishes that must be confirmed before one delivery is acknowledged."""

    def __init__(
        self,
        outbound: Outbound,
        copies: Copies,
        delivery: Delivery,
        publications: list[Publication],
        owner: Settlement,
    ) -> None:
        assert delivery.outcome is not None
        self._outbound = outbound
        self._copies = copies
        self._delivery = delivery
        self._outcome = delivery.outcome
        self._owner = owner
        self._publications = publications
        self._open: Sequence[int] = range(len(publications))
        self._tickets: list[Ticket] = []
        self._left = 0
        self._refusals = 0

    def start(self) -> None:
        """Publish what is not confirmed yet, unless the delivery is no longer ours."""
        link = self._delivery.link
        if not link.alive:
            self._done()
            return
        self._owner._publishing.add(id(self))
        # Asked again before the write: a ticket may have waited for a broker that put the delivery back.
        self._tickets = [
            Ticket(self._publications[index], self._ended, lambda: link.alive) for index in self._open
        ]
        self._left = len(self._tickets)
        self._outbound.submit(self._tickets)

    def _ended(self, _ticket: Ticket) -> None:
        self._left -= 1  # one at a time: by whoever has the publisher's turn
        if self._left:
            return
        try:
            self._all_ended()
        except Exception:
            self._done()
            self._owner._give_back_later(self._delivery)

    def _all_ended(self) -> None:
        ended = zip(self._open, self._tickets, strict=True)
        self._open = [index for index, ticket in ended if ticket.result is not Result.CONFIRMED]
        refused = [ticket.reason for ticket in self._tickets if ticket.result is Result.REFUSED]
        if not self._open:
            self._delivery.link.ack(self._delivery.tag)
            self._confirmed()
        elif not self._delivery.link.alive:
            self._done()
        elif refused:
            self._refused(refused[0])
        else:
            # Copies that may be stored already and those that follow must be told apart: built anew.
            self._publications = self._copies.of(self._delivery, self._outcome, alone=True)
            self._outbound.call_later(_UNKNOWN_PAUSE_SECONDS, self.start)

    def _confirmed(self) -> None:
        self._done()
        if self._delivery.after_confirm is not None:
            self._delivery.after_confirm()

    def _done(self) -> None:
        self._owner._publishing.discard(id(self))

    def _refused(self, reason: str) -> None:
        self._refusals += 1
        delivery = self._delivery
        event = log.bind(
            outcome=self._outcome.name,
            message_id=delivery.message_id,
            queue=delivery.queue_name,
            reason=reason,
        )
        if self._refusals >= _REFUSALS:
            event.error("settlement.rejected_natively")
            delivery.link.reject(delivery.tag)
            self._confirmed()
            return
        event.warning("settlement.refused", tries=self._refusals)
        self._publications = self._copies.of(delivery, self._outcome, full=False, alone=True)
        self._outbound.call_later(_REFUSED_PAUSE_SECONDS * self._refusals, self.start)
