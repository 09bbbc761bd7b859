"""Does a delayed job wait in the broker, as long as asked and in nobody's way?"""

from __future__ import annotations

import time
from typing import Any

import dramatiq

from middleware import Queue
from middleware.transport.delivery import current_delivery
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Journal
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

OTHER = "other"


def declare_clock(broker: dramatiq.Broker, queue: str, journal: Journal) -> dramatiq.Actor[Any, Any]:
    """Declare an actor that notes the delay it was sent with and the seconds until it ran."""

    @dramatiq.actor(broker=broker, queue_name=queue, actor_name=f"clock_{queue}")
    def clock(delay_ms: int, sent: float) -> None:
        journal.note((delay_ms, time.monotonic() - sent))

    return clock


def send(clock: dramatiq.Actor[Any, Any], delay_ms: int) -> None:
    """Send a job that notes how late it is."""
    clock.send_with_options(args=(delay_ms, time.monotonic()), delay=delay_ms)


def test_delays_of_every_length_arrive_in_time(make_broker: MakeBroker, start: StartWorker) -> None:
    """Jobs sent with 0.05 to 1.6 s of delay, the longest first, each run when they are due."""
    journal = Journal()
    broker = make_broker()
    clock = declare_clock(broker, QUEUE, journal)
    start(broker)
    send(clock, 0)
    journal.wait_for(1)
    for ticks in range(32, 0, -1):
        send(clock, ticks * 50)
    for delay_ms, waited in journal.wait_for(33)[1:]:
        assert delay_ms / 1000 <= waited < delay_ms / 1000 + 2.0


def test_a_short_delay_does_not_wait_behind_a_long_one(make_broker: MakeBroker, start: StartWorker) -> None:
    """A delay of 1 s sent after one of 8 s is over after 1 s."""
    journal = Journal()
    broker = make_broker()
    clock = declare_clock(broker, QUEUE, journal)
    start(broker)
    send(clock, 8000)
    send(clock, 1000)
    ((delay_ms, waited),) = journal.wait_for(1)
    assert delay_ms == 1000
    assert 1.0 <= waited < 4.0


def test_a_delay_waits_in_the_broker_alone(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """A delayed job lies in its ladder, ready and with nobody: not in its queue, not in a worker."""
    broker = make_broker()
    clock = declare_clock(broker, QUEUE, Journal())
    start(broker)
    send(clock, 20_000)
    assert broker.queue_counts(QUEUE).delayed == 1
    assert rabbit.ready(QUEUE) == 0
    assert rabbit.ready(f"{QUEUE}.delay.08") == 1


def test_a_queue_that_is_gone_holds_up_no_other(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """Delayed jobs whose queue was deleted wait; another queue's come in time."""
    journal = Journal()
    broker = make_broker(queues=[Queue(name=QUEUE), Queue(name=OTHER)])
    clocks = {name: declare_clock(broker, name, journal) for name in (QUEUE, OTHER)}
    start(broker, queues={OTHER})
    for number in range(20):
        send(clocks[QUEUE], 300 + number)
    rabbit.delete_queue(QUEUE)
    send(clocks[OTHER], 700)
    ((delay_ms, waited),) = journal.wait_for(1)
    assert delay_ms == 700
    assert waited < 4
    assert len(journal.entries) == 1


def test_a_queue_that_refuses_holds_up_no_other(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """Delayed jobs that their queue refuses wait; another queue's come in time."""
    journal = Journal()
    broker = make_broker(queues=[Queue(name=QUEUE), Queue(name=OTHER)])
    clocks = {name: declare_clock(broker, name, journal) for name in (QUEUE, OTHER)}
    start(broker, queues={OTHER})
    broker.enqueue(message("fills the queue"))
    rabbit.set_policy(f"^{QUEUE}$", max_length=1)
    for _ in range(5):
        send(clocks[QUEUE], 300)
    send(clocks[OTHER], 700)
    ((_delay_ms, waited),) = journal.wait_for(1)
    assert waited < 4
    assert len(journal.entries) == 1


def test_a_retry_does_not_carry_the_headers_of_its_way(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """What the broker wrote on a message on its way through the ladder is not copied into its retry."""
    broker = make_broker()
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=1, min_backoff=20_000, max_backoff=20_000)
    def fail() -> None:
        current = current_delivery()
        journal.note(current and current.attempt)
        raise RuntimeError("fails")

    start(broker)
    fail.send_with_options(delay=100)
    journal.wait_for(1)

    def waiting() -> list[str]:
        return [name for name in rabbit.queue_names() if ".delay." in name and rabbit.ready(name) == 1]

    (level,) = wait_until(waiting, what="the retry to wait in the ladder")
    (letter,) = rabbit.letters(level)
    assert letter.headers
    added = {"x-delivery-count"}  # by RabbitMQ 3.10 on whatever it hands out, see versions.py
    assert not {name for name in letter.headers if name.startswith("x-")} - added
    assert letter.properties.expiration is None


def test_a_job_that_came_through_the_ladder_is_dead_lettered_natively(
    rabbit: Rabbit, make_broker: MakeBroker
) -> None:
    """A job whose routing key is a delay's bits still lands in its own queue's dead letters when rejected."""
    broker = make_broker()
    sent = broker.enqueue(message(), delay=200)  # by the one way that leaves it the delay's routing key
    wait_until(lambda: rabbit.ready(QUEUE) == 1, what="the job to be due")
    with rabbit.channel() as channel:
        method, _properties, _body = channel.basic_get(QUEUE)
        assert method is not None
        channel.basic_reject(method.delivery_tag, requeue=False)
        (letter,) = rabbit.wait_for_letters(f"{QUEUE}.XQ")
    assert letter.body == sent.encode()


def test_looking_at_a_delayed_job_does_not_move_it(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A delayed job that somebody looks at and returns forty times still waits where it waited."""
    make_broker().enqueue(message(), delay=20_000)
    (level,) = (name for name in rabbit.queue_names() if ".delay." in name and rabbit.ready(name))
    with rabbit.channel() as channel:
        for _ in range(40):
            method = wait_until(lambda: channel.basic_get(level)[0], what="the delayed job")
            assert method is not None
            channel.basic_nack(method.delivery_tag, requeue=True)
    wait_until(lambda: rabbit.ready(level) == 1, what="the delayed job to be back")
