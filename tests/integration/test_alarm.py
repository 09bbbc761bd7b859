"""What if the broker blocks publishing? Senders are told, acknowledgements go on, retries are held."""

from __future__ import annotations

import time
from datetime import timedelta

import dramatiq
import pytest

from middleware import EnqueueUnknown, NotEnqueued
from middleware.transport.delivery import current_delivery
from tests.brokers import QUEUE, stop_worker
from tests.control import Control
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Gate, Journal
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

pytestmark = pytest.mark.owned_services

SECOND = timedelta(seconds=1)


def test_a_send_during_an_alarm_ends_at_its_deadline(
    rabbit: Rabbit, make_broker: MakeBroker, control: Control
) -> None:
    """The send that meets the alarm may be stored, the next ones are not; each says so in time."""
    broker = make_broker(publish_timeout=SECOND)
    broker.enqueue(message())
    with control.memory_alarm():
        began = time.monotonic()
        with pytest.raises(EnqueueUnknown, match="no confirm within 1 s"):
            broker.enqueue(message("meets the alarm"))
        for _ in range(2):
            with pytest.raises(NotEnqueued, match="the broker blocks publishing"):
                broker.enqueue(message("during the alarm"))
        assert time.monotonic() - began < 5
    broker.enqueue(message("afterwards"))
    bodies = b"".join(letter.body for letter in rabbit.letters(QUEUE))
    assert b"during the alarm" not in bodies
    assert bodies.count(b"meets the alarm") <= 1
    assert bodies.count(b"afterwards") == 1


def test_an_alarm_stops_no_acknowledgement_and_holds_retries(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, control: Control
) -> None:
    """Under the alarm jobs complete and are acknowledged; a failed one is held and retried after it."""
    broker = make_broker()
    journal, gate = Journal(), Gate()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def run(fails: bool) -> None:
        gate.wait()
        current = current_delivery()
        journal.note((fails, current and current.attempt))
        if fails and current is not None and current.attempt == 1:
            raise RuntimeError("fails")

    run.send(True)
    for _ in range(30):
        run.send(False)
    start(broker)
    with control.memory_alarm():
        gate.open()
        assert sorted(journal.wait_for(31)) == [(False, 1)] * 30 + [(True, 1)]
        wait_until(lambda: rabbit.queue(QUEUE).get("messages") == 1, what="all but the failed job to be gone")
    assert journal.wait_for(32)[-1] == (True, 2)


def test_a_retry_of_a_lost_delivery_is_not_published_after_the_alarm(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker, start: StartWorker, control: Control
) -> None:
    """A held retry whose delivery went back to the broker meanwhile is dropped: one retry, not two."""
    sender = make_broker()
    broker = make_broker(url=proxy.url, publish_timeout=SECOND)
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, min_backoff=20_000, max_backoff=20_000)
    def fail() -> None:
        journal.note("ran")
        raise RuntimeError("fails")

    sender.enqueue(fail.message())
    with control.memory_alarm():
        with pytest.raises(EnqueueUnknown):  # from now on the broker's publisher knows that it is blocked
            broker.enqueue(message("meets the alarm"), delay=100)
        worker = start(broker)
        journal.wait_for(1)
        rabbit.close_connections(f" {QUEUE}")
        journal.wait_for(2)
    levels = [name for name in rabbit.queue_names() if ".delay." in name]
    wait_until(lambda: sum(map(rabbit.ready, levels)) == 1, what="the retry to be delayed")
    stop_worker(worker)
    assert sum(map(rabbit.ready, levels)) == 1
    assert len(journal.entries) == 2
