"""What does a send accept, and what comes off the wire? Every test runs on RabbitMQ and in memory."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import dramatiq
import pytest

from middleware import (
    DeclarationError,
    NotEnqueued,
    PayloadError,
    Queue,
    UnknownQueue,
    send_with_options_async,
)
from middleware.transport.evidence import KIND, REASON
from tests.brokers import QUEUE, SHORTER_LADDER
from tests.fixtures_broker import MakeRig
from tests.journal import Journal
from tests.rigs import Rig
from tests.waiting import wait_until


def message_to(actor: str, *args: Any, queue: str = QUEUE, **options: Any) -> dramatiq.Message[Any]:
    """Return a message as a sender makes it that does not know the actor's code."""
    return dramatiq.Message(queue_name=queue, actor_name=actor, args=args, kwargs={}, options=options)


def test_many_jobs_are_sent_at_once(rig: Rig) -> None:
    """`enqueue_many` returns its messages when all are stored, and each runs once."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    messages = [note.message(number) for number in range(500)]
    assert rig.broker.enqueue_many(messages) == messages
    rig.start()
    journal.wait_for(500)
    rig.assert_nothing_left()
    assert sorted(journal.entries) == list(range(500))


def test_many_jobs_can_be_delayed_together(rig: Rig) -> None:
    """`enqueue_many` takes a delay for all."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    rig.start()
    rig.broker.enqueue_many([note.message(number) for number in range(20)], delay_ms=300)
    journal.wait_for(20)
    rig.assert_nothing_left()
    assert sorted(journal.entries) == list(range(20))


def test_sending_nothing_is_fine(rig: Rig) -> None:
    """`enqueue_many` of nothing returns nothing."""
    assert rig.broker.enqueue_many([]) == []


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"user": object()}, "kwargs['user']"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "kwargs['when']"),
        ({"data": {"photo": b"jpeg"}}, "kwargs['data']['photo']"),
        ({"text": "x" * 70_000}, "65536 bytes"),
        ({"rows": [1] * 3000}, "kwargs['rows']"),
    ],
)
def test_an_argument_that_must_not_travel_is_refused_at_the_sender(
    rig: Rig, arguments: dict[str, Any], path: str
) -> None:
    """What is not small and plain JSON raises at the caller, names the argument, and stores nothing."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def take(**arguments: Any) -> None: ...

    with pytest.raises(PayloadError, match="pass an id") as refused:
        take.send(**arguments)
    assert path in str(refused.value)
    assert rig.unfinished() in (0, -1)


def test_one_bad_argument_stores_none_of_many(rig: Rig) -> None:
    """`enqueue_many` checks all jobs before it stores the first."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def take(argument: Any) -> None: ...

    with pytest.raises(PayloadError):
        rig.broker.enqueue_many([take.message(1), take.message(object())])
    assert rig.unfinished() in (0, -1)


def test_a_large_argument_that_is_meant_travels(rig: Rig) -> None:
    """`snapshots` lets a large dict or list through."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, snapshots=("rows",))
    def take(rows: list[int]) -> None:
        journal.note(len(rows))

    rig.start()
    take.send(list(range(3000)))
    assert journal.wait_for(1) == [3000]


def test_an_unknown_queue_is_refused_at_the_sender(rig: Rig) -> None:
    """A message for a queue that nobody declared raises, naming the queues there are."""
    with pytest.raises(UnknownQueue, match="expected its queue to be one of jobs, got: 'nowhere'"):
        rig.broker.enqueue(message_to("any", queue="nowhere"))


@pytest.mark.parametrize("delay_ms", [-1, SHORTER_LADDER // timedelta(milliseconds=1) + 1])
def test_a_delay_out_of_range_is_refused_at_the_sender(rig: Rig, delay_ms: int) -> None:
    """A delay below zero or above the longest one raises and stores nothing."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def take() -> None: ...

    with pytest.raises(NotEnqueued, match="JOBS_MAX_DELAY"):
        take.send_with_options(delay=delay_ms)
    assert rig.unfinished() in (0, -1)


@pytest.mark.parametrize(
    "options",
    [
        {"delay": "5"},
        {"delay": True},
        {"max_age": float("inf")},
        {"mine": [float("nan")]},
        {"max_retries": "3"},
    ],
    ids=repr,
)
def test_an_option_that_no_worker_reads_is_refused_at_the_sender(rig: Rig, options: dict[str, Any]) -> None:
    """A delay or an option of the wrong type, or of a number that JSON has not, raises and stores nothing."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def take() -> None: ...

    with pytest.raises(NotEnqueued, match=r"expected .* got: "):
        take.send_with_options(**options)
    with pytest.raises(NotEnqueued, match=r"expected .* got: "):
        asyncio.run(send_with_options_async(take, **options))
    assert rig.unfinished() in (0, -1)


def test_an_actor_on_an_undeclared_queue_is_refused(rig: Rig) -> None:
    """An actor must name a declared queue; the error names actor, queue and the queues there are."""
    with pytest.raises(
        DeclarationError, match="actor 'lost': expected queue_name to be one of jobs, got: 'default'"
    ):

        @dramatiq.actor(broker=rig.broker)
        def lost() -> None: ...


def test_an_unknown_option_is_refused_at_declaration(rig: Rig) -> None:
    """A misspelt option raises where the actor is declared."""
    with pytest.raises(ValueError, match="max_retry"):

        @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retry=3)
        def misspelt() -> None: ...


GOOD = message_to("note", "x").asdict() | {"args": ["x"]}
UNREADABLE = {
    "no JSON": b"\xff\xfe{",
    "empty": b"",
    "text": b"hello",
    "a list": b"[1, 2]",
    "null": b"null",
    "deeply nested": b"[" * 100_000,
    "no fields": b"{}",
    "a field too many": json.dumps(GOOD | {"extra": 1}).encode(),
    "args of another type": json.dumps(GOOD | {"args": "x"}).encode(),
    "kwargs of another type": json.dumps(GOOD | {"kwargs": None}).encode(),
    "no actor name": json.dumps(GOOD | {"actor_name": 7}).encode(),
    "an actor name that is no text": json.dumps(GOOD | {"actor_name": "\ud800"}).encode(),
    "an endless actor name": json.dumps(GOOD | {"actor_name": "a" * 300}).encode(),
    "no id": json.dumps(GOOD | {"message_id": None}).encode(),
    "an endless id": json.dumps(GOOD | {"message_id": "a" * 300}).encode(),
    "no time": json.dumps(GOOD | {"message_timestamp": "now"}).encode(),
    "an option of another type": json.dumps(GOOD | {"options": {"max_retries": "many"}}).encode(),
}


def test_unreadable_bodies_become_dead_letters_and_the_worker_goes_on(rig: Rig) -> None:
    """What is no message lands in the dead letters byte for byte with a reason, and the next job runs."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(text: str) -> None:
        journal.note(text)

    rig.start()
    note.send("before")
    for body in UNREADABLE.values():
        rig.put(body)
    note.send("after")
    letters = rig.wait_for_dead_letters(len(UNREADABLE))
    assert sorted(letter.body for letter in letters) == sorted(UNREADABLE.values())
    assert {letter.headers[KIND] for letter in letters} == {"undecodable"}
    assert all(letter.headers[REASON] for letter in letters)
    assert journal.wait_for(2) == ["before", "after"]
    rig.assert_nothing_left(dead=len(UNREADABLE))


def test_a_job_for_an_unknown_actor_becomes_a_dead_letter(rig: Rig) -> None:
    """A job whose actor this worker does not declare lands in the dead letters, and the next job runs."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(text: str) -> None:
        journal.note(text)

    rig.start()
    stranger = rig.broker.enqueue(message_to("stranger", 1))
    note.send("after")
    (letter,) = rig.wait_for_dead_letters()
    assert letter.body == stranger.encode()
    assert letter.headers[KIND] == "unknown_actor"
    assert "'stranger'" in letter.headers[REASON]
    assert journal.wait_for(1) == ["after"]
    rig.assert_nothing_left(dead=1)


@pytest.mark.parametrize(
    "change",
    [
        {"queue_name": "another"},
        {"options": {"eta": 99999999999999}},
        {"options": {"eta": "soon"}},
        {"options": {"whatever": [1, {"two": None}]}},
        {"options": {"min_backoff": 2**52, "max_backoff": 2**52, "max_retries": 0}},
    ],
    ids=["another queue's name", "a far eta", "a wrong eta", "an unknown option", "a huge backoff"],
)
def test_odd_but_harmless_messages_run(rig: Rig, change: dict[str, Any]) -> None:
    """A message that names another queue, an `eta` or an unknown option runs where it lies, at once."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(text: str) -> None:
        journal.note(text)

    rig.start()
    note.send("first")  # the inline worker starts with the first job
    rig.put(json.dumps(GOOD | change).encode())
    assert journal.wait_for(2) == ["first", "x"]
    rig.assert_nothing_left()


def test_any_backoff_that_a_message_may_carry_can_be_waited_for(rig: Rig) -> None:
    """A retry with the largest backoffs that come off the wire waits in the ladder; nothing overflows."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(_text: str) -> None:
        journal.note("ran")
        raise RuntimeError("fails")

    rig.start()
    note.send_with_options(args=("first",), max_retries=0)
    rig.put(json.dumps(GOOD | {"options": {"min_backoff": 2**52, "max_backoff": 2**52}}).encode())
    journal.wait_for(2)
    wait_until(lambda: rig.unfinished() == 1, what="the retry to be delayed")
    rig.stop()
    assert rig.unfinished() == 1
    assert len(rig.dead_letters()) == 1


def test_two_queues_of_one_name_are_refused(make_rig: MakeRig) -> None:
    """A queue is declared once: which of two specs counts would be a guess."""
    with pytest.raises(DeclarationError, match="'twice'"):
        make_rig(queues=[Queue(name="twice"), Queue(name="twice", prefetch=1)])
