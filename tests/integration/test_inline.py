"""What does the broker without a server promise beyond the contract that it shares with RabbitMQ's?"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq.errors import QueueJoinTimeout

from middleware import BusinessReject, Failures, InlineBroker, NotEnqueued, Queue, QueueCounts
from tests.brokers import QUEUE, build_inline_broker, start_worker
from tests.journal import Gate, Journal
from tests.strangers import message
from tests.waiting import wait_until


@pytest.fixture
def broker() -> Iterator[InlineBroker]:
    """A broker with a queue named `jobs`, closed at the test's end."""
    broker = build_inline_broker()
    yield broker
    broker.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that opens at the latest when the test ends."""
    gate = Gate()
    yield gate
    gate.open()


def test_building_starts_nothing() -> None:
    """No thread starts before the first job is sent."""
    before = threading.active_count()
    broker = build_inline_broker()
    assert threading.active_count() == before
    broker.close()


def test_the_start_says_that_jobs_do_not_survive(
    broker: InlineBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """The first job's log line tells what is missing and how to get it."""
    with caplog.at_level(logging.INFO):
        broker.enqueue(message())
    lines = [record.getMessage() for record in caplog.records if "do not survive" in record.getMessage()]
    assert len(lines) == 1
    assert "make services" in lines[0]


def test_join_waits_for_delays_and_retries(broker: InlineBroker) -> None:
    """`join` returns when a queue's jobs have ended, delayed ones and retries included."""
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def run(fails: bool) -> None:
        journal.note(fails)
        if fails and journal.entries.count(True) == 1:
            raise RuntimeError("once")

    run.send(True)
    run.send_with_options(args=(False,), delay=300)
    broker.join(QUEUE, timeout=5000)
    assert sorted(journal.entries) == [False, True, True]
    broker.join_all(timedelta(seconds=1))


def test_join_gives_up(broker: InlineBroker) -> None:
    """`join` raises when jobs are left after its timeout."""
    broker.enqueue(message(), delay=20_000)
    with pytest.raises(QueueJoinTimeout):
        broker.join(QUEUE, timeout=100)
    with pytest.raises(QueueJoinTimeout):
        broker.join_all(timedelta(milliseconds=100))


def test_every_state_is_counted(gate: Gate) -> None:
    """Waiting, active, delayed and failed jobs are counted exactly; no more are active than the prefetch."""
    broker = build_inline_broker(queues=[Queue(name=QUEUE, prefetch=2)])
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def hold() -> None:
        journal.note("began")
        gate.wait()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def reject() -> None:
        raise BusinessReject("no")

    reject.send()
    broker.join(QUEUE, timeout=5000)
    for _ in range(5):
        hold.send()
    hold.send_with_options(delay=20_000)
    journal.wait_for(2)
    assert broker.queue_counts(QUEUE) == QueueCounts(
        QUEUE, waiting=3, active=2, delayed=1, failed=1, dead=None
    )
    gate.open()
    broker.close()


def test_a_serial_queue_runs_one_job_after_the_other(gate: Gate) -> None:
    """A serial queue keeps its order with many threads."""
    broker = build_inline_broker(queues=[Queue(name=QUEUE, serial=True)], threads=8)
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    broker.enqueue_many([note.message(number) for number in range(200)])
    broker.join(QUEUE, timeout=10_000)
    broker.close()
    assert journal.entries == list(range(200))


def test_closing_lets_running_jobs_finish_and_tells_what_is_left(
    broker: InlineBroker, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """`close()` waits for running jobs, starts no other, and logs how many are gone."""
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def hold(number: int) -> None:
        journal.note(("began", number))
        gate.wait()
        journal.note(("ended", number))

    for number in range(10):
        hold.send(number)
    journal.wait_for(4)
    closing = threading.Thread(target=broker.close)
    with caplog.at_level(logging.WARNING):
        closing.start()
        wait_until(lambda: broker.queue_counts(QUEUE).waiting == 6, what="the others to be returned")
        gate.open()
        closing.join()
    assert len(journal.entries) == 8
    assert any("6 jobs that have not ended" in record.getMessage() for record in caplog.records)


def test_a_job_that_fails_while_closing_starts_no_second_worker(broker: InlineBroker, gate: Gate) -> None:
    """The retry of a job that fails after `close()` began is not a first job: the process can end."""
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def fail() -> None:
        journal.note("ran")
        gate.wait()
        raise RuntimeError("fails")

    fail.send()
    journal.wait_for(1)
    closing = threading.Thread(target=broker.close)
    closing.start()
    wait_until(lambda: broker._worker is None, what="closing to begin")
    gate.open()
    closing.join()
    left = [thread.name for thread in threading.enumerate() if type(thread).__module__ == "dramatiq.worker"]
    assert not left, f"expected no worker thread, got: {left}"


def test_a_closed_broker_can_be_used_again(broker: InlineBroker) -> None:
    """After `close()` the next job starts another worker, whose time limits work as well."""
    journal, gate = Journal(), Gate()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=0, time_limit=200)
    def hang(number: int) -> None:
        journal.note(number)
        gate.wait()

    for number in range(2):
        hang.send(number)
        broker.join(QUEUE, timeout=5000)
        broker.close()
    assert journal.entries == [0, 1]
    assert [letter.headers["jobs-kind"] for letter in broker.dead_letters(QUEUE)] == ["timeout", "timeout"]


def test_a_worker_from_outside_is_refused(broker: InlineBroker, caplog: pytest.LogCaptureFixture) -> None:
    """`dramatiq jobs` with this broker ends with 2 and says what to run."""
    with caplog.at_level(logging.CRITICAL), pytest.raises(SystemExit) as exit:
        start_worker(broker)
    assert exit.value.code == 2
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert "make services" in line


class Refuses(dramatiq.Middleware):
    """Refuses every start."""

    def before_worker_boot(self, broker: Any, worker: Any) -> None:
        raise SystemExit(78)


def test_a_refused_start_refuses_the_send() -> None:
    """If a middleware refuses the worker's start, the send that would have started it raises."""
    broker = build_inline_broker(middleware=[Refuses(), Failures()])
    for _ in range(2):
        with pytest.raises(NotEnqueued, match="refuses to start"):
            broker.enqueue(message())
    assert broker.queue_counts(QUEUE).waiting == 0


def test_the_process_ends_with_its_main_thread() -> None:
    """A program that sent jobs ends by itself: running jobs finish, worker threads keep nothing alive."""
    program = [sys.executable, "-m", "tests.programs.inline"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["parent", "ran", "child", "ran"]


def test_a_job_that_runs_when_the_program_ends_has_the_grace() -> None:
    """The interpreter waits for a running job, though the main thread has ended."""
    program = [sys.executable, "-m", "tests.programs.inline_exit"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["began", "ended"]
