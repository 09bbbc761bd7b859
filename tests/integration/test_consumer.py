"""Does a worker take what it can hold, settle what it took, and go on when its connection goes?"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dramatiq
import pika.data
import pytest
from dramatiq.middleware import AsyncIO

from middleware import BusinessReject, Queue
from middleware.transport.delivery import current_delivery
from tests.brokers import QUEUE, build_middleware, stop_worker
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Gate, Journal
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.waiting import stays, wait_until


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that opens at the latest when the test ends."""
    gate = Gate()
    yield gate
    gate.open()


def test_a_worker_holds_no_more_than_the_prefetch(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, gate: Gate
) -> None:
    """A process takes as many jobs as the queue's prefetch says, running and waiting together."""
    broker = make_broker(queues=[Queue(name=QUEUE, prefetch=3)])

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def hold() -> None:
        gate.wait()

    broker.enqueue_many([hold.message() for _ in range(8)])
    start(broker, threads=2)
    wait_until(lambda: rabbit.ready(QUEUE) == 5, what="three jobs to be taken")
    stays(lambda: rabbit.ready(QUEUE) == 5, what="no more than three jobs taken", seconds=0.5)


@pytest.mark.parametrize("rejects", [False, True], ids=["completed", "dead"])
def test_a_lost_connection_settles_no_other_job(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker, start: StartWorker, gate: Gate, rejects: bool
) -> None:
    """What ends after its connection was closed removes and rejects nothing on the next connection.

    The broker counts the new connection's deliveries from 1 again: the old tags name other jobs there.
    """
    broker = make_broker(url=proxy.url, queues=[Queue(name=QUEUE, prefetch=4)])
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def run(name: str) -> None:
        journal.note(name)
        if name == "first" and journal.entries.count("first") == 1:
            gate.wait()
        if name == "first" and rejects:
            raise BusinessReject("no")

    names = ["first", "second", "third", "fourth"]
    broker.enqueue_many([run.message(name) for name in names])
    worker = start(broker, threads=1)
    journal.wait_for(1)
    wait_until(lambda: rabbit.ready(QUEUE) == 0, what="all jobs to be taken")
    proxy.drop()
    wait_until(lambda: worker.work_queue.qsize() == 3 + 4, what="all jobs to be taken again")
    gate.open()
    wait_until(lambda: set(names) <= set(journal.entries[1:]), what="all jobs to run")
    stop_worker(worker)
    assert sorted(journal.entries) == sorted([*names, "first"])
    assert rabbit.ready(QUEUE) == 0
    assert len(rabbit.letters(f"{QUEUE}.XQ")) == (1 if rejects else 0)


def test_a_job_of_a_dead_connection_is_not_started(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, gate: Gate
) -> None:
    """A prefetched job whose connection went before it began is left to its redelivery."""
    broker = make_broker(queues=[Queue(name=QUEUE, prefetch=5)])
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def run(number: int) -> None:
        current = current_delivery()
        journal.note((number, current is not None and current.redelivered))
        if journal.entries == [(0, False)]:
            gate.wait()

    broker.enqueue_many([run.message(number) for number in range(5)])
    worker = start(broker, threads=1)
    journal.wait_for(1)
    wait_until(lambda: rabbit.ready(QUEUE) == 0, what="all jobs to be taken")
    rabbit.close_connections(f" {QUEUE}")
    wait_until(lambda: worker.work_queue.qsize() == 4 + 5, what="all jobs to be taken again")
    gate.open()
    assert sorted(journal.wait_for(6)) == sorted([(0, False), *((number, True) for number in range(5))])


def test_a_long_job_keeps_its_connection(rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker) -> None:
    """A job longer than several heartbeats is delivered once: the connection lives while its thread works."""
    broker = make_broker(url=rabbit.url + "?heartbeat=1", queues=[Queue(name=QUEUE, prefetch=1)])
    journal, clock = Journal(), threading.Event()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def work() -> None:
        journal.note("began")
        clock.wait(4)
        journal.note("ended")

    worker = start(broker, threads=1)
    work.send()
    assert journal.wait_for(2) == ["began", "ended"]
    stop_worker(worker)
    assert journal.entries == ["began", "ended"]
    assert rabbit.ready(QUEUE) == 0


def test_stopping_returns_what_has_not_begun(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, gate: Gate
) -> None:
    """When a worker is told to stop, prefetched jobs are back in the queue while another one still runs."""
    broker = make_broker(queues=[Queue(name=QUEUE, prefetch=6)])
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def hold(number: int) -> None:
        journal.note(number)
        gate.wait()

    broker.enqueue_many([hold.message(number) for number in range(6)])
    worker = start(broker, threads=1)
    journal.wait_for(1)
    wait_until(lambda: rabbit.ready(QUEUE) == 0, what="all jobs to be taken")
    stopping = threading.Thread(target=stop_worker, args=(worker,))
    stopping.start()
    wait_until(lambda: rabbit.ready(QUEUE) == 5, what="five jobs to be returned")
    assert stopping.is_alive()
    gate.open()
    stopping.join()
    assert journal.entries == [0]
    assert rabbit.ready(QUEUE) == 5


def test_an_interrupted_job_is_returned_and_uses_no_attempt(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, gate: Gate
) -> None:
    """A job that outlasts the grace is interrupted and back in its queue, as the attempt that it was."""
    broker = make_broker(middleware=build_middleware(grace=timedelta(milliseconds=300)))
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=0)
    def hold() -> None:
        current = current_delivery()
        journal.note(current and current.attempt)
        gate.wait()

    worker = start(broker)
    hold.send()
    journal.wait_for(1)
    stop_worker(worker)
    assert rabbit.ready(QUEUE) == 1
    assert not rabbit.letters(f"{QUEUE}.XQ")
    gate.open()
    start(broker)
    assert journal.wait_for(2) == [1, 1]


def test_a_serial_queue_is_first_in_first_out(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """Two workers with four threads each run a serial queue's jobs one at a time and in order."""
    journal = Journal()
    running = threading.Semaphore(1)
    brokers = []
    for _ in range(2):
        alone = [each for each in build_middleware() if not isinstance(each, AsyncIO)]  # one loop a process
        broker = make_broker(queues=[Queue(name=QUEUE, serial=True)], middleware=alone)
        brokers.append(broker)

        @dramatiq.actor(broker=broker, queue_name=QUEUE)
        def note(number: int) -> None:
            assert running.acquire(blocking=False), "two jobs run at once"
            journal.note(number)
            running.release()

    brokers[0].enqueue_many([note.message(number) for number in range(100)])
    workers = [start(broker) for broker in brokers]
    assert journal.wait_for(100) == list(range(100))
    for worker in workers:
        stop_worker(worker)
    assert not rabbit.letters(f"{QUEUE}.XQ")
    assert rabbit.ready(QUEUE) == 0


def test_a_deleted_queue_is_declared_again_and_consumed(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """A queue that somebody deletes under a worker comes back, and the worker with it."""
    broker = make_broker()
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    start(broker)
    note.send(1)
    journal.wait_for(1)
    rabbit.delete_queue(QUEUE)
    wait_until(lambda: rabbit.consumers(QUEUE) == 1, what="the queue to be declared again, and consumed")
    note.send(2)
    wait_until(lambda: 2 in journal.entries, what="the next job to run")


class FarTimestamp:
    """A header that pika itself would neither write nor read: milliseconds where AMQP has seconds."""


def test_a_header_that_pika_cannot_read_stops_no_queue(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job with a timestamp beyond Python's in its headers runs, and so do those after it."""
    encode = pika.data.encode_value

    def encode_far(pieces: list[bytes], value: Any) -> int:
        if not isinstance(value, FarTimestamp):
            return encode(pieces, value)
        pieces.append(b"T" + struct.pack(">Q", 1764400000000 * 1000))
        return 9

    broker = make_broker()
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    start(broker)
    monkeypatch.setattr(pika.data, "encode_value", encode_far)
    rabbit.publish(QUEUE, note.message(1).encode(), headers={"sent-at": FarTimestamp()})
    note.send(2)
    assert sorted(journal.wait_for(2)) == [1, 2]


def test_an_outage_is_one_line_a_change(
    rabbit: Rabbit,
    proxy: Proxy,
    make_broker: MakeBroker,
    start: StartWorker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A connection that is away for many attempts is logged three times: lost, cannot connect, is back."""
    broker = make_broker(url=proxy.url)
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    start(broker)
    note.send(1)
    journal.wait_for(1)

    def lines() -> list[str]:
        texts = [record.getMessage() for record in caplog.records if record.name.startswith("middleware")]
        return [text.split()[0] for text in texts if f"connection='consumer {QUEUE}'" in text]

    with caplog.at_level(logging.INFO):
        began = time.monotonic()
        proxy.refuses.set()
        proxy.drop()
        wait_until(lambda: proxy.refused >= 3, what="three attempts to connect")
        proxy.refuses.clear()
        wait_until(lambda: "connection.established" in lines(), what="the connection to be back")
        outage = time.monotonic() - began
    assert lines() == ["connection.lost", "connection.failed", "connection.established"]
    assert outage > 0.5, "expected pauses between the attempts"
    note.send(2)
    wait_until(lambda: 2 in journal.entries, what="the next job to run")
