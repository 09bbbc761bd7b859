"""What follows a job? Pipelines, groups and callbacks; every test runs on RabbitMQ and in memory."""

from __future__ import annotations

import time
from typing import Any

import dramatiq
import pytest
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import StubBackend

from middleware import Queue
from middleware.transport.delivery import current_delivery
from middleware.transport.evidence import KIND, REASON
from tests.brokers import QUEUE, build_middleware
from tests.fixtures_broker import MakeRig
from tests.journal import Journal
from tests.rigs import Rig

OTHER = "other"


@pytest.fixture
def two_queues(make_rig: MakeRig) -> Rig:
    """A broker with the queues `jobs` and `other`, and groups' completion callbacks."""
    return make_rig(
        queues=[Queue(name=QUEUE), Queue(name=OTHER)],
        middleware=[GroupCallbacks(StubBackend()), *build_middleware(max_retries=1)],
    )


def test_a_pipeline_hands_each_result_to_the_next_job(two_queues: Rig) -> None:
    """Each step of a pipeline gets the result of the one before, on its own queue and after its own delay."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def double(number: int) -> int:
        return 2 * number

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def note(number: int) -> None:
        journal.note((number, time.monotonic()))

    rig.start()
    sent = time.monotonic()
    steps = [double.message(3), double.message_with_options(), note.message_with_options(delay=500)]
    dramatiq.pipeline(steps, broker=rig.broker).run()
    ((number, ran),) = journal.wait_for(1)
    assert number == 12
    assert 0.5 <= ran - sent < 4
    rig.assert_nothing_left(QUEUE)
    rig.assert_nothing_left(OTHER)


def test_a_failed_step_ends_its_pipeline(two_queues: Rig) -> None:
    """What follows a job in a pipeline does not run when the job fails."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=1)
    def fail() -> None:
        raise RuntimeError("fails")

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(_result: Any) -> None:
        journal.note("ran")

    rig.start()
    dramatiq.pipeline([fail.message(), note.message_with_options()], broker=rig.broker).run()
    rig.wait_for_dead_letters()
    rig.assert_nothing_left(dead=1)
    assert not journal.entries


def test_a_group_runs_its_jobs_and_then_its_callback(two_queues: Rig) -> None:
    """A group's jobs run each once, and its completion callback once after all of them."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def part(number: int) -> None:
        journal.note(number)

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def whole() -> None:
        journal.note("whole")

    rig.start()
    group = dramatiq.group([part.message(number) for number in range(5)], broker=rig.broker)
    group.add_completion_callback(whole.message())
    group.run()
    entries = journal.wait_for(6)
    assert sorted(entries[:5]) == [0, 1, 2, 3, 4]
    assert entries[5:] == ["whole"]
    rig.assert_nothing_left(QUEUE)
    rig.assert_nothing_left(OTHER)


def test_callbacks_follow_success_failure_and_the_last_retry(two_queues: Rig) -> None:
    """`on_success` gets the result, `on_failure` each error, `on_retry_exhausted` the count."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def succeeded(message: dict[str, Any], result: Any) -> None:
        journal.note(("succeeded", message["args"], result))

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def failed(message: dict[str, Any], error: dict[str, str]) -> None:
        journal.note(("failed", message["args"], error))

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def exhausted(message: dict[str, Any], facts: dict[str, int]) -> None:
        journal.note(("exhausted", message["args"], facts))

    @dramatiq.actor(
        broker=rig.broker,
        queue_name=QUEUE,
        max_retries=1,
        on_success="succeeded",
        on_failure="failed",
        on_retry_exhausted="exhausted",
    )
    def halve(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number // 2

    rig.start()
    halve.send(4)
    assert journal.wait_for(1) == [("succeeded", [4], 2)]
    halve.send(5)
    entries = journal.wait_for(4)[1:]
    error = {"type": "ValueError", "message": "odd"}
    assert sorted(entries) == [
        ("exhausted", [5], {"retries": 1, "max_retries": 1}),
        ("failed", [5], error),
        ("failed", [5], error),
    ]
    rig.assert_nothing_left(QUEUE, dead=1)
    rig.assert_nothing_left(OTHER)


def test_a_callback_can_be_named_for_one_message(two_queues: Rig) -> None:
    """Callbacks in a message's options count before the actor's."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(_message: dict[str, Any], result: Any) -> None:
        journal.note(result)

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def answer() -> int:
        return 42

    rig.start()
    answer.send_with_options(on_success=note)
    assert journal.wait_for(1) == [42]


def test_what_an_actor_sends_itself_is_sent_at_once(two_queues: Rig) -> None:
    """A `send()` inside an actor without a key is a send like any other, also if the job fails afterwards."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def note(text: str) -> None:
        journal.note(text)

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=0)
    def send_and_fail() -> None:
        note.send("sent")
        journal.wait_for(1)
        raise RuntimeError("afterwards")

    rig.start()
    send_and_fail.send()
    rig.wait_for_dead_letters()
    assert journal.entries == ["sent"]


def test_a_result_that_cannot_travel_makes_its_job_a_dead_letter(two_queues: Rig) -> None:
    """A job whose result is no JSON for the next step is dead with that reason, not held and not retried."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, on_success="note")
    def make() -> object:
        current = current_delivery()
        journal.note(current and current.attempt)
        return object()

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def note(*_arguments: Any) -> None:
        journal.note("followed")

    rig.start()
    dramatiq.pipeline([make.message(), note.message()], broker=rig.broker).run()
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[KIND] == "invalid"
    assert "plain JSON" in letter.headers[REASON]
    rig.assert_nothing_left(QUEUE, dead=1)
    rig.assert_nothing_left(OTHER)
    assert journal.entries == [1]


def test_a_callback_carries_a_large_message(two_queues: Rig) -> None:
    """What follows a job may be larger than what a sender may send: it carries the job it follows."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, on_success="note")
    def measure(text: str) -> int:
        return len(text)

    @dramatiq.actor(broker=rig.broker, queue_name=OTHER)
    def note(message: dict[str, Any], result: int) -> None:
        journal.note((len(message["args"][0]), result))

    rig.start()
    measure.send("x" * 65_000)
    assert journal.wait_for(1) == [(65_000, 65_000)]


@pytest.mark.parametrize("option", ["on_success", "on_failure", "on_retry_exhausted"])
def test_an_unknown_callback_holds_up_no_job(two_queues: Rig, option: str) -> None:
    """A job whose callback nobody declared here ends: dead if it must be followed, else as it would."""
    rig = two_queues

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=1)
    def run(fails: bool) -> None:
        if fails:
            raise RuntimeError("fails")

    rig.start()
    options: dict[str, Any] = {option: "nowhere"}
    run.send_with_options(args=(option != "on_success",), **options)
    (letter,) = rig.wait_for_dead_letters()
    expected = ("unknown_actor", "nowhere") if option == "on_success" else ("unexpected", "fails")
    assert (letter.headers[KIND], letter.headers[REASON]) == expected
    rig.assert_nothing_left(dead=1)


def test_a_next_step_on_an_unknown_queue_makes_its_job_a_dead_letter(two_queues: Rig) -> None:
    """A job whose next step belongs to a queue that nobody declares is dead, and nothing else follows it."""
    rig, journal = two_queues, Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(*_facts: Any) -> None:
        journal.note("followed")

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, on_success="note")
    def run() -> int:
        journal.note("ran")
        return 1

    rig.start()
    step: dramatiq.Message[Any] = dramatiq.Message(
        queue_name="elsewhere", actor_name="far", args=(), kwargs={}, options={}
    )
    rig.broker.enqueue(run.message_with_options(pipe_target=step.asdict()))
    (letter,) = rig.wait_for_dead_letters()
    assert "elsewhere" in letter.headers[REASON]
    rig.assert_nothing_left(dead=1)
    assert journal.entries == ["ran"]
