"""Does the consumer hear of what is settled while it waits for the socket, for ten minutes here?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest
from dramatiq.broker import MessageProxy

from middleware import QuorumBroker
from middleware.transport.consumer import QueueConsumer
from middleware.transport.outcome import COMPLETED
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

IDLE_MS = 600_000
JOBS = 15


class Consuming:
    """A consumer in a thread of its own, as Dramatiq runs it."""

    def __init__(self, consumer: QueueConsumer) -> None:
        self.consumer = consumer
        self.taken: list[MessageProxy] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            delivery = next(self.consumer)
            if delivery is not None:
                self.taken.append(delivery)
        self.consumer.close()

    def settle(self, number: int) -> None:
        """Settle so many deliveries, from another thread."""
        for _ in range(number):
            delivery = self.taken.pop(0)
            delivery.outcome = COMPLETED  # type: ignore[attr-defined]  # a Delivery
            self.consumer.ack(delivery)

    def stop(self, broker: QuorumBroker) -> None:
        """End the thread with one more delivery."""
        self._stop.set()
        broker.enqueue(message("last"))
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def consuming(rabbit: Rabbit, make_broker: MakeBroker) -> Iterator[Consuming]:
    """A consumer that holds all jobs of the queue."""
    broker = make_broker()
    broker.actors["far_away"] = None  # type: ignore[assignment]  # only its name matters
    broker.enqueue_many([message(str(number)) for number in range(JOBS)])
    consumer = broker.consume(QUEUE, timeout=IDLE_MS)
    assert isinstance(consumer, QueueConsumer)
    consuming = Consuming(consumer)
    yield consuming
    consuming.stop(broker)


def left(rabbit: Rabbit) -> int:
    """Return how many jobs of the queue the broker has, held ones included."""
    return int(rabbit.queue(QUEUE).get("messages", -1))


@pytest.mark.parametrize(
    "number",
    [
        1,
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(15, marks=pytest.mark.slow),
    ],
)
def test_what_is_settled_reaches_the_broker(consuming: Consuming, rabbit: Rabbit, number: int) -> None:
    """One settled delivery, fewer than are enough, as many, and all: the broker hears of each of them."""
    wait_until(lambda: len(consuming.taken) == JOBS, what="all jobs to be taken")
    wait_until(lambda: consuming.consumer._polling, what="the thread to wait for the socket")
    consuming.settle(number)
    wait_until(lambda: left(rabbit) == JOBS - number, what="the broker to hear of it")


@pytest.mark.slow
def test_one_after_the_other_reaches_the_broker(consuming: Consuming, rabbit: Rabbit) -> None:
    """What is settled while others are being gathered is not forgotten."""
    wait_until(lambda: len(consuming.taken) == JOBS, what="all jobs to be taken")
    for done in range(1, JOBS + 1):
        consuming.settle(1)
        if done % 5 == 0:
            wait_until(partial(_has_left, rabbit, JOBS - done), what=f"{done} to be heard of")


def _has_left(rabbit: Rabbit, number: int) -> bool:
    return left(rabbit) == number
