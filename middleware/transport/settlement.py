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
from datetime import timedelta
from typing import Any, Final

from dramatiq import Message

from ..logs import get_logger
from . import outcome as outcomes
from .delivery import Delivery
from .evidence import KIND, REASON, Evidence, cut
from .ladder import round_up, ticks_for
from .outcome import Dead, Outcome, Retry, Snoozed
from .publication import DEAD, DELAYED, READY, Publication, Result, Ticket
from .sending import Outbound

log = get_logger(__name__)

_REFUSALS: Final = 4
"""Refused publishes before the original is dead-lettered by the broker itself."""
_REFUSED_PAUSE_SECONDS: Final = 0.5
_UNKNOWN_PAUSE_SECONDS: Final = 0.2
_REASON_BYTES: Final = 1024

Decide = Callable[[Delivery, BaseException], Outcome]


class Settlement:
    """Acts on outcomes.

    Parameters:
        outbound: takes the publications.
        decide: turns an exception into an outcome, for deliveries that reach settlement undecided.
        publication_of: turns a follow-up message and its delay in milliseconds into a publication.
        longest: ticks of the longest delay that the ladders hold.
    """

    def __init__(
        self,
        outbound: Outbound,
        decide: Decide,
        publication_of: Callable[[Message[Any], int | None], Publication],
        longest: int,
    ) -> None:
        self._outbound = outbound
        self._decide = decide
        self._publication_of = publication_of
        self._longest = longest
        self._publishing: set[int] = set()

    @property
    def is_publishing(self) -> bool:
        """Whether a delivery waits for the confirm of its retry, dead letter or follow-ups."""
        return bool(self._publishing)

    def settle(self, delivery: Delivery) -> None:
        """Carry out a delivery's outcome. Never raises: on any failure the job stays with the broker."""
        try:
            self._settle(delivery)
        except Exception:
            log.critical(
                "settlement.failed", message_id=delivery.message_id, queue=delivery.queue_name, exc_info=True
            )

    def _settle(self, delivery: Delivery) -> None:
        if not delivery.link.alive:
            return
        if delivery.outcome is None:
            delivery.outcome = self._undecided(delivery)
        if isinstance(delivery.outcome, outcomes.Returned):
            delivery.link.requeue(delivery.tag)
            return
        publications = self._build(delivery, delivery.outcome, full=True)
        if publications:
            _Publishing(self, delivery, publications).start()
        else:
            delivery.link.ack(delivery.tag)

    def _undecided(self, delivery: Delivery) -> Outcome:
        if delivery.exception is not None:
            return self._decide(delivery, delivery.exception)
        if delivery.failed:
            return outcomes.FAILED_BY_MIDDLEWARE
        return outcomes.RETURNED

    def _build(self, delivery: Delivery, outcome: Outcome, *, full: bool) -> list[Publication]:
        # A snoozed job has not failed and a duplicate has not run: nothing follows them.
        is_end = not isinstance(outcome, Snoozed | outcomes.Duplicate)
        following = delivery.follow_ups if is_end else ()
        follow_ups = [self._publication_of(message, delay_ms) for message, delay_ms in following]
        evidence = delivery.evidence
        if isinstance(outcome, Retry):
            after = evidence.failed(outcome.kind, outcome.error).next_attempt()
            follow_ups.append(self._delayed(delivery, after, outcome.delay, exact=outcome.exact, full=full))
        elif isinstance(outcome, Snoozed):
            follow_ups.append(
                self._delayed(delivery, evidence.snoozed(), outcome.delay, exact=True, full=full)
            )
        elif isinstance(outcome, Dead):
            follow_ups.append(dead_letter(delivery, outcome, full=full))
        return follow_ups

    def _delayed(
        self, delivery: Delivery, evidence: Evidence, delay: timedelta, *, exact: bool, full: bool
    ) -> Publication:
        headers = evidence.to_headers(full=full)
        if delay <= timedelta(0):
            return _copy(delivery, READY, headers, alone=not full)
        ticks = ticks_for(delay) if exact else round_up(ticks_for(delay))
        return _copy(delivery, DELAYED, headers, ticks=min(ticks, self._longest), alone=not full)


class _Publishing:
    """The publishes that must be confirmed before one delivery is acknowledged."""

    def __init__(self, settlement: Settlement, delivery: Delivery, publications: list[Publication]) -> None:
        self._settlement = settlement
        self._outbound = settlement._outbound
        self._delivery = delivery
        self._publications = publications
        self._open: Sequence[int] = range(len(publications))
        self._tickets: list[Ticket] = []
        self._left = 0
        self._refusals = 0

    def start(self) -> None:
        """Publish what is not confirmed yet, unless the delivery is no longer ours."""
        if not self._delivery.link.alive:
            self._done()
            return
        self._settlement._publishing.add(id(self))
        # Asked again before the write: a ticket may have waited for a broker that put the delivery back.
        link = self._delivery.link
        self._tickets = [
            Ticket(self._publications[index], self._ended, lambda: link.alive) for index in self._open
        ]
        self._left = len(self._tickets)
        self._outbound.submit(self._tickets)

    def _ended(self, _ticket: Ticket) -> None:
        self._left -= 1  # only the publisher's thread counts
        if self._left:
            return
        results = dict(zip(self._open, self._tickets, strict=True))
        self._open = [index for index, ticket in results.items() if ticket.result is not Result.CONFIRMED]
        refused = [ticket.reason for ticket in self._tickets if ticket.result is Result.REFUSED]
        if not self._open:
            self._delivery.link.ack(self._delivery.tag)
            self._done()
        elif refused:
            self._refused(refused[0])
        else:
            self._outbound.call_later(_UNKNOWN_PAUSE_SECONDS, self.start)

    def _done(self) -> None:
        self._settlement._publishing.discard(id(self))

    def _refused(self, reason: str) -> None:
        delivery, outcome = self._delivery, self._delivery.outcome
        if not delivery.link.alive or outcome is None:
            self._done()
            return
        self._refusals += 1
        event = log.bind(
            outcome=outcome.name, message_id=delivery.message_id, queue=delivery.queue_name, reason=reason
        )
        if self._refusals >= _REFUSALS:
            event.error("settlement.rejected_natively")
            delivery.link.reject(delivery.tag)
            self._done()
            return
        event.warning("settlement.refused", tries=self._refusals)
        self._publications = self._settlement._build(delivery, outcome, full=False)
        self._outbound.call_later(_REFUSED_PAUSE_SECONDS * self._refusals, self.start)


def dead_letter(delivery: Delivery, outcome: Dead, *, full: bool = True) -> Publication:
    """Return the publication that makes a delivery a dead letter with its evidence."""
    evidence = delivery.evidence.failed(outcome.kind, outcome.error, outcome.reason)
    headers = evidence.to_headers(full=full)
    headers[KIND] = outcome.kind
    last = evidence.history[-1]
    headers[REASON] = cut(str(last["message"]) or str(last["exception"]) or outcome.kind, _REASON_BYTES)
    return _copy(delivery, DEAD, headers, alone=not full)


def _copy(
    delivery: Delivery, place: str, headers: dict[str, Any], *, ticks: int = 0, alone: bool
) -> Publication:
    return Publication(
        queue=delivery.queue_name,
        place=place,
        body=delivery.body,
        message_id=delivery.message_id,
        actor=delivery.actor_name,
        timestamp=delivery.message_timestamp // 1000,
        headers=headers,
        ticks=ticks,
        alone=alone,
    )
