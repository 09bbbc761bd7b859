"""Is a queue that refused something usable as soon as it takes jobs again?

A broker's channel may go on refusing for a queue that was full once (seen on RabbitMQ 3.10.8); another one on
the same connection does not.
"""

from __future__ import annotations

import threading

import pika
import pytest

from middleware import NotEnqueued
from middleware.transport.addresses import parse_urls
from middleware.transport.confirms import ConfirmChannel
from middleware.transport.lane import READY_KIND, Lane
from middleware.transport.publication import READY, Publication, Result, Ticket
from middleware.transport.quorum import QuorumBroker
from middleware.transport.wire import Wire
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

_FULL = 3


@pytest.fixture
def broker(make_broker: MakeBroker) -> QuorumBroker:
    """A broker whose queue is declared."""
    broker = make_broker()
    broker.enqueue(message())
    return broker


def fill(rabbit: Rabbit) -> None:
    """Have the queue take no more than a few jobs."""
    rabbit.set_policy(f"^{QUEUE}$", max_length=_FULL)
    rabbit.wait_for_policy(QUEUE, max_length=_FULL)


def make_room(rabbit: Rabbit) -> None:
    """Have the queue take any number of jobs again."""
    rabbit.delete_policy()
    rabbit.wait_for_policy(QUEUE)


def refuse_one(broker: QuorumBroker) -> None:
    """Send until the queue refuses a job; it does so a few jobs late."""

    def send_on() -> None:
        for _ in range(100):
            broker.enqueue(message())

    with pytest.raises(NotEnqueued, match="full"):
        send_on()


def test_a_queue_that_was_full_takes_the_next_job(rabbit: Rabbit, broker: QuorumBroker) -> None:
    """Once the limit is gone, the first send is confirmed, without another connection."""
    connection = broker.publisher._publishing.wire
    fill(rabbit)
    refuse_one(broker)
    make_room(rabbit)
    broker.enqueue(message())
    assert broker.publisher._publishing.wire is connection


def test_each_job_that_is_in_flight_beside_a_refused_one_is_answered(
    rabbit: Rabbit, broker: QuorumBroker
) -> None:
    """A refusal leaves nothing unknown, and what it does not name is stored."""
    fill(rabbit)
    before = rabbit.ready(QUEUE)
    jobs = [message() for _ in range(3000)]
    with pytest.raises(NotEnqueued) as failed:
        broker.enqueue_many(jobs)
    assert not failed.value.unknown
    assert rabbit.ready(QUEUE) == before + len(jobs) - len(failed.value.refused)


@pytest.mark.slow
def test_senders_that_never_pause_get_over_it(rabbit: Rabbit, broker: QuorumBroker) -> None:
    """Many at once go on sending to a full queue; all of them succeed once it is not full."""
    fill(rabbit)
    refuse_one(broker)
    has_room = threading.Event()
    failed: list[Exception] = []

    def send_on() -> None:
        late = 0
        while late < 20:
            late += has_room.is_set()
            try:
                broker.enqueue(message())
            except NotEnqueued as error:
                if late > 10:
                    failed.append(error)

    senders = [threading.Thread(target=send_on) for _ in range(8)]
    for sender in senders:
        sender.start()
    make_room(rabbit)
    has_room.set()
    for sender in senders:
        sender.join()
    assert not failed


def test_what_is_in_flight_beside_a_refusal_is_waited_for(rabbit: Rabbit, broker: QuorumBroker) -> None:
    """A lane that was refused something writes no more on its channel, and leaves it with the last answer."""
    wire = Wire(parse_urls(rabbit.url), "publisher")
    channels: list[ConfirmChannel] = []

    def open_channel() -> ConfirmChannel:
        channels.append(ConfirmChannel(wire, lambda _ticket: None, lambda _closed: None))
        return channels[-1]

    def write() -> None:
        while lane.can_write:
            lane.write(Ticket.claim, open_channel)

    def await_end(ticket: Ticket) -> None:
        def is_ended() -> bool:
            wire.pump(0.1)
            return ticket.result is not None

        wait_until(is_ended, what="the broker's answer")

    tickets = [
        Ticket(Publication(QUEUE, READY, b"x", str(number)), lambda _ticket: None) for number in range(4)
    ]
    lane = Lane(QUEUE, READY_KIND)
    lane.waiting.extend(tickets[:2])
    write()
    channels[0]._answered(pika.frame.Method(1, pika.spec.Basic.Nack(delivery_tag=1)))
    lane.waiting.extend(tickets[2:])
    write()
    assert len(lane.waiting) == 2
    await_end(tickets[1])
    write()
    await_end(tickets[3])
    wire.close()
    assert [ticket.result for ticket in tickets] == [Result.REFUSED, *[Result.CONFIRMED] * 3]
    assert len(channels) == 2
