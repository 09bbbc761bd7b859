from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from dramatiq import Message

from middleware import Snooze
from middleware.transport.copies import Copies
from middleware.transport.delivery import Delivery
from middleware.transport.evidence import ATTEMPT, COPY_ID, FIRST, HISTORY, KIND, REASON, Evidence
from middleware.transport.outcome import (
    COMPLETED,
    DISCARDED,
    DUPLICATE,
    RETURNED,
    Dead,
    Outcome,
    Retry,
    Snoozed,
)
from middleware.transport.publication import DEAD, DELAYED, READY, Publication, Result, Ticket
from middleware.transport.sending import Countdown
from middleware.transport.settlement import Settlement

SECOND = timedelta(seconds=1)


class Outbound:
    """Ends each publish as the test says, and runs what is put off when the test says so."""

    problem = ""

    def __init__(self, *results: Result) -> None:
        self.results = list(results)
        self.published: list[Publication] = []
        self.waiting: list[Ticket] = []
        self.later: list[Callable[[], None]] = []

    def submit(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            if ticket.wanted is not None and not ticket.wanted():
                ticket.end(Result.REFUSED, "not wanted")
                continue
            self.published.append(ticket.publication)
            self.waiting.append(ticket)
        while self.results and self.waiting:
            self.waiting.pop(0).end(self.results.pop(0), "as the test says")

    def drive(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        return False

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds > 0
        self.later.append(call)

    def run_later(self) -> None:
        calls, self.later = self.later, []
        for call in calls:
            call()

    def close(self) -> None: ...


class Link:
    """Notes what was said about deliveries."""

    def __init__(self) -> None:
        self.alive = True
        self.said: list[tuple[str, int]] = []

    def ack(self, tag: int) -> None:
        self.said.append(("ack", tag))

    def requeue(self, tag: int) -> None:
        self.said.append(("requeue", tag))

    def reject(self, tag: int) -> None:
        self.said.append(("reject", tag))


MESSAGE: Message[Any] = Message(queue_name="critical", actor_name="charge", args=(1,), kwargs={}, options={})
FOLLOWER: Message[Any] = Message(queue_name="other", actor_name="note", args=(), kwargs={}, options={})


def a_delivery(outcome: Outcome | None, evidence: Evidence = FIRST) -> tuple[Delivery, Link]:
    """Return a delivery with tag 7 that ended in some way."""
    link = Link()
    body = b" " + MESSAGE.encode()  # not what encoding it again would give
    delivery = Delivery(MESSAGE, link=link, tag=7, body=body, evidence=evidence)
    delivery.outcome = outcome
    return delivery, link


def publication_of(message: Message[Any], delay_ms: int | None) -> Publication:
    """Turn a follow-up into a publication."""
    return Publication(message.queue_name, READY, message.encode(), message.message_id, ticks=delay_ms or 0)


def a_settlement(outbound: Outbound, decided: Outcome = COMPLETED) -> Settlement:
    """Return a settlement whose undecided failures are decided in some way."""
    return Settlement(outbound, lambda delivery, error: decided, Copies(publication_of, 2**8 - 1))


@pytest.mark.parametrize("outcome", [COMPLETED, DUPLICATE, DISCARDED], ids=lambda outcome: outcome.name)
def test_what_has_ended_is_acknowledged(outcome: Outcome) -> None:
    """A job that ended without a successor is acknowledged at once."""
    outbound = Outbound()
    delivery, link = a_delivery(outcome)
    a_settlement(outbound).settle(delivery)
    assert link.said == [("ack", 7)]
    assert not outbound.published


def test_what_did_not_run_goes_back() -> None:
    """A returned job goes back to its queue."""
    delivery, link = a_delivery(RETURNED)
    a_settlement(Outbound()).settle(delivery)
    assert link.said == [("requeue", 7)]


ENDS: list[tuple[Outcome, str, int]] = [
    (Retry("transient", OSError("x"), 3 * SECOND, exact=True), DELAYED, 60),
    (Retry("transient", OSError("x"), 3.3 * SECOND), DELAYED, 72),
    (Retry("transient", OSError("x"), timedelta(0)), READY, 0),
    (Retry("transient", OSError("x"), timedelta(days=9)), DELAYED, 255),
    (Snoozed(3.3 * SECOND), DELAYED, 66),
    (Dead("rejected", ValueError("x")), DEAD, 0),
]


@pytest.mark.parametrize(("outcome", "place", "ticks"), ENDS)
def test_a_copy_is_published_and_then_the_job_is_acknowledged(
    outcome: Outcome, place: str, ticks: int
) -> None:
    """A retry, a snooze or a dead letter is confirmed before the original is acknowledged, not earlier."""
    outbound = Outbound()
    delivery, link = a_delivery(outcome)
    settlement = a_settlement(outbound)
    settlement.settle(delivery)
    (copy,) = outbound.published
    assert (copy.place, copy.ticks, copy.queue) == (place, ticks, "critical")
    assert (copy.body, copy.message_id, copy.actor) == (delivery.body, MESSAGE.message_id, "charge")
    assert not link.said
    assert settlement.is_publishing
    outbound.waiting[0].end(Result.CONFIRMED)
    assert link.said == [("ack", 7)]
    assert not settlement.is_publishing


def test_a_copy_carries_the_evidence() -> None:
    """A retry carries the next attempt's number, a snooze the same one, a dead letter kind and reason."""
    outbound = Outbound(*[Result.CONFIRMED] * 3)
    evidence = Evidence(attempt=4)
    for outcome in (
        Retry("transient", OSError("gone"), SECOND),
        Snoozed(SECOND),
        Dead("rejected", ValueError("no credit")),
    ):
        a_settlement(outbound).settle(a_delivery(outcome, evidence)[0])
    retry, snooze, dead = (publication.headers for publication in outbound.published)
    assert (retry[ATTEMPT], snooze[ATTEMPT], dead[ATTEMPT]) == (5, 4, 4)
    assert "gone" in retry[HISTORY]
    assert HISTORY not in snooze
    assert (dead[KIND], dead[REASON]) == ("rejected", "no credit")
    assert len({headers[COPY_ID] for headers in (retry, snooze, dead)}) == 3


@pytest.mark.parametrize("outcome", [COMPLETED, RETURNED, *(each for each, _place, _ticks in ENDS)])
def test_a_dead_channel_publishes_nothing(outcome: Outcome) -> None:
    """What ended after its channel went is neither published nor acknowledged: it is delivered again."""
    outbound = Outbound()
    delivery, link = a_delivery(outcome)
    link.alive = False
    a_settlement(outbound).settle(delivery)
    assert not outbound.published
    assert not link.said


def test_a_channel_that_dies_while_a_publish_waits_stops_it() -> None:
    """A held publish whose channel goes is not repeated."""
    outbound = Outbound(Result.UNKNOWN)
    delivery, link = a_delivery(ENDS[0][0])
    settlement = a_settlement(outbound)
    settlement.settle(delivery)
    link.alive = False
    outbound.run_later()
    assert len(outbound.published) == 1
    assert not link.said
    assert not settlement.is_publishing


def test_an_unconfirmed_publish_is_repeated_as_another_copy() -> None:
    """A publish without a confirm is repeated until there is one; copies can be told apart."""
    outbound = Outbound(Result.UNKNOWN, Result.UNKNOWN, Result.CONFIRMED)
    delivery, link = a_delivery(ENDS[0][0])
    a_settlement(outbound).settle(delivery)
    for _ in range(2):
        assert not link.said
        outbound.run_later()
    assert link.said == [("ack", 7)]
    assert len({publication.headers[COPY_ID] for publication in outbound.published}) == 3


def test_a_refused_publish_is_tried_again_smaller_and_then_rejected_natively() -> None:
    """A refused copy is tried a few times, alone and reduced; then the broker dead-letters the original."""
    outbound = Outbound(*[Result.REFUSED] * 10)
    delivery, link = a_delivery(ENDS[0][0])
    settlement = a_settlement(outbound)
    settlement.settle(delivery)
    while outbound.later:
        assert not link.said
        outbound.run_later()
    assert link.said == [("reject", 7)]
    assert not settlement.is_publishing
    first, *others = outbound.published
    assert 1 < len(others) < 10
    assert HISTORY in first.headers
    assert not first.alone
    assert all(HISTORY not in copy.headers and copy.alone for copy in others)
    assert all(copy.headers[ATTEMPT] == 2 for copy in others)


def test_what_follows_a_job_is_published_before_it_is_acknowledged() -> None:
    """A completed job waits for the confirm of each follow-up; a confirmed one is not published again."""
    outbound = Outbound(Result.CONFIRMED, Result.UNKNOWN, Result.CONFIRMED)
    delivery, link = a_delivery(COMPLETED)
    delivery.follow_ups += [(FOLLOWER, None), (FOLLOWER, 500)]
    a_settlement(outbound).settle(delivery)
    assert not link.said
    outbound.run_later()
    assert link.said == [("ack", 7)]
    assert [publication.ticks for publication in outbound.published] == [0, 500, 500]


@pytest.mark.parametrize("outcome", [Snoozed(SECOND), DUPLICATE, RETURNED], ids=lambda outcome: outcome.name)
def test_nothing_follows_a_job_that_has_not_ended(outcome: Outcome) -> None:
    """A snoozed, duplicate or returned job sends no callbacks."""
    outbound = Outbound(Result.CONFIRMED)
    delivery, _link = a_delivery(outcome)
    delivery.follow_ups.append((FOLLOWER, None))
    a_settlement(outbound).settle(delivery)
    assert all(publication.queue == "critical" for publication in outbound.published)


def test_a_delivery_without_an_outcome_is_never_acknowledged() -> None:
    """An undecided delivery goes back, a failed one is dead, one with an exception is decided then."""
    outbound = Outbound(Result.CONFIRMED)
    delivery, link = a_delivery(None)
    a_settlement(outbound).settle(delivery)
    assert link.said == [("requeue", 7)]
    failed, link = a_delivery(None)
    failed.fail()
    a_settlement(outbound).settle(failed)
    assert outbound.published[-1].place == DEAD
    outbound.results = [Result.CONFIRMED]
    raised, link = a_delivery(None)
    raised.stuff_exception(Snooze(SECOND))
    a_settlement(outbound, Snoozed(SECOND)).settle(raised)
    assert outbound.published[-1].place == DELAYED
    assert link.said == [("ack", 7)]


def test_a_failure_of_settlement_itself_gives_the_job_back() -> None:
    """If the kit itself fails, it does not raise at the worker: the job goes back after a while."""

    def broken(delivery: Delivery, error: BaseException) -> Outcome:
        raise ZeroDivisionError

    outbound = Outbound()
    delivery, link = a_delivery(None)
    delivery.stuff_exception(ValueError("x"))
    Settlement(outbound, broken, Copies(publication_of, 255)).settle(delivery)
    assert not link.said
    outbound.run_later()
    assert link.said == [("requeue", 7)]
