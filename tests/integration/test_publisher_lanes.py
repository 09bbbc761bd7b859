"""Does one queue's trouble reach another queue's sends, and does the publisher get over it?"""

from __future__ import annotations

from datetime import timedelta

import pytest

from middleware import EnqueueError, NotEnqueued, Queue
from middleware.transport.publication import READY, Publication, Ticket
from middleware.transport.quorum import QuorumBroker
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

OTHER = "other"


@pytest.fixture
def broker(make_broker: MakeBroker) -> QuorumBroker:
    """A broker with two queues."""
    return make_broker(queues=[Queue(name=QUEUE), Queue(name=OTHER)])


def test_one_message_sent_twice_at_once_is_stored_twice(rabbit: Rabbit, broker: QuorumBroker) -> None:
    """Two publishes with one message id are told apart, also when both come back as unroutable."""
    broker.enqueue(message())
    rabbit.delete_queue(QUEUE)
    twin = message()
    broker.enqueue_many([twin, twin])
    assert rabbit.ready(QUEUE) == 2


def test_a_ladder_that_is_gone_is_declared_again(rabbit: Rabbit, broker: QuorumBroker) -> None:
    """After a channel was closed over a missing exchange, later sends find it again."""
    broker.enqueue(message(), delay=20_000)
    with rabbit.channel() as channel:
        channel.exchange_delete(f"{QUEUE}.delay.08")
    with pytest.raises(EnqueueError):
        broker.enqueue_many([message() for _ in range(3)], delay_ms=20_000)
    broker.enqueue_many([message() for _ in range(3)], delay_ms=20_000)
    assert broker.queue_counts(QUEUE).delayed == 4


def test_a_missing_ladder_is_no_matter_of_another_queue(rabbit: Rabbit, broker: QuorumBroker) -> None:
    """While one queue's delayed sends fail, another queue's are confirmed."""
    other = message().copy(queue_name=OTHER)
    for each in (message(), other):
        broker.enqueue(each, delay=20_000)
    with rabbit.channel() as channel:
        channel.exchange_delete(f"{QUEUE}.delay.08")
    with pytest.raises(EnqueueError) as failed:
        broker.enqueue_many([message(), message(), other], delay_ms=20_000)
    assert other not in failed.value.refused + failed.value.unknown
    assert broker.queue_counts(OTHER).delayed == 2


def test_sends_that_gave_up_do_not_pile_up(make_broker: MakeBroker) -> None:
    """What nobody waits for any more is forgotten while the broker blocks publishing."""
    broker = make_broker(publish_timeout=timedelta(seconds=1))
    publisher, publishing = broker.publisher, broker.publisher._publishing
    broker.enqueue(message())
    publishing._on_blocked("a test")  # as an alarm would have it
    for _ in range(3):
        with pytest.raises(NotEnqueued, match="certainly not stored"):
            broker.enqueue(message())
    publisher.submit([Ticket(Publication(QUEUE, READY, b"", "last"), lambda _ticket: None)])

    def left() -> int:
        return sum(len(lane.waiting) for lane in publishing._lanes) + len(publishing._lanes._inbox)

    wait_until(lambda: left() <= 1, what="the abandoned ones to be forgotten")
