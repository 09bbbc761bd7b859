"""Are the counts of a queue's jobs true, and is what cannot be known said to be unknown?"""

from __future__ import annotations

import dramatiq
import pytest

from middleware import BusinessReject, QueueCounts
from middleware.transport.wire import WireError
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Gate, Journal
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until


def test_each_state_is_counted(rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker) -> None:
    """Waiting, active, delayed and failed jobs are counted where they are."""
    broker = make_broker(management_url=rabbit.management_url)
    gate, journal = Gate(), Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def hold() -> None:
        journal.note("began")
        gate.wait()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def reject() -> None:
        raise BusinessReject("no")

    start(broker, threads=2)
    reject.send()
    rabbit.wait_for_letters(f"{QUEUE}.XQ")
    for _ in range(20):  # the queue's prefetch is 16
        hold.send()
    for delay_ms in (20_000, 21_000, 22_000):  # longer than the API takes to count
        hold.send_with_options(delay=delay_ms)
    journal.wait_for(2)
    try:
        expected = QueueCounts(QUEUE, waiting=4, active=16, delayed=3, failed=1, dead=None)
        wait_until(lambda: broker.queue_counts(QUEUE) == expected, what=f"{expected}", seconds=15)
    finally:
        gate.open()


def test_without_the_management_api_nobody_knows_what_is_active(make_broker: MakeBroker) -> None:
    """AMQP does not tell unacknowledged jobs: their number is None, not 0."""
    broker = make_broker()
    broker.enqueue_many([message() for _ in range(3)])
    assert broker.queue_counts(QUEUE) == QueueCounts(QUEUE, 3, None, 0, 0, None)
    away = make_broker(management_url="http://guest:guest@127.0.0.1:1")
    assert away.queue_counts(QUEUE) == QueueCounts(QUEUE, 3, None, 0, 0, None)


def test_queues_that_do_not_exist_are_not_empty_but_unknown(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """Before anything is declared, and where a part of the ladder is gone, the number is None."""
    broker = make_broker(management_url=rabbit.management_url)
    assert broker.queue_counts(QUEUE) == QueueCounts(QUEUE, None, None, None, None, None)
    broker.enqueue(message())
    rabbit.delete_queue(f"{QUEUE}.delay.03")
    assert broker.queue_counts(QUEUE).waiting == 1
    assert broker.queue_counts(QUEUE).delayed is None


def test_delayed_jobs_that_cannot_be_handed_on_are_counted(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A job that is due while its queue is gone still counts as delayed."""
    broker = make_broker(management_url=rabbit.management_url)
    broker.enqueue_many([message() for _ in range(3)], delay_ms=100)
    rabbit.delete_queue(QUEUE)
    wait_until(lambda: rabbit.ready(f"{QUEUE}.delay.01") == 0, what="the jobs to be due")
    wait_until(lambda: broker.queue_counts(QUEUE).delayed == 3, what="three delayed jobs", seconds=15)


def test_counts_need_a_broker(make_broker: MakeBroker) -> None:
    """Without a broker there are no counts but an error."""
    with pytest.raises(WireError, match="cannot connect"):
        make_broker(url="amqp://guest:guest@127.0.0.1:1/%2F").queue_counts(QUEUE)
