"""What becomes of a job, whichever broker carries it? Every test runs on RabbitMQ and in memory."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq.errors import Retry

from middleware import BusinessReject, Invalid, Snooze
from middleware.transport.delivery import current_delivery
from middleware.transport.evidence import ATTEMPT, HISTORY, KIND, REASON, TRACEBACK
from tests.brokers import QUEUE
from tests.journal import Gate, Journal
from tests.rigs import Rig


def attempt() -> int:
    """Return the number of the attempt that this thread or async actor is."""
    delivery = current_delivery()
    assert delivery is not None
    return delivery.attempt


def history(headers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a dead letter's failed attempts, oldest first."""
    entries: list[dict[str, Any]] = json.loads(headers[HISTORY])
    return entries


def test_a_job_runs_once_with_its_arguments(rig: Rig) -> None:
    """A job that is sent runs once, with what it was sent with, and is gone."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(*args: Any, **kwargs: Any) -> None:
        journal.note((args, kwargs))

    rig.start()
    note.send("é", 1, None, flag=True)
    assert journal.wait_for(1) == [(("é", 1, None), {"flag": True})]
    rig.assert_nothing_left()
    assert len(journal.entries) == 1


def test_a_failed_attempt_is_followed_by_the_next(rig: Rig) -> None:
    """A job that fails comes back with the next attempt's number, and may succeed then."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def fail_twice() -> None:
        journal.note(attempt())
        if attempt() < 3:
            raise RuntimeError("not yet")

    rig.start()
    fail_twice.send()
    assert journal.wait_for(3) == [1, 2, 3]
    rig.assert_nothing_left()


def test_exhausted_retries_end_in_a_dead_letter_with_the_evidence(rig: Rig) -> None:
    """After the last retry a job is a dead letter, byte for byte, with every attempt and the traceback."""
    began = time.time()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=2)
    def fail(number: int) -> None:
        raise RuntimeError(f"attempt {attempt()} of {number} fails")

    rig.start()
    message = fail.send(7)
    (letter,) = rig.wait_for_dead_letters()
    assert letter.body == message.encode()
    assert letter.headers[KIND] == "unexpected"
    assert letter.headers[ATTEMPT] == 3
    assert letter.headers[REASON] == "attempt 3 of 7 fails"
    assert "raise RuntimeError" in letter.headers[TRACEBACK]
    entries = history(letter.headers)
    assert [entry["attempt"] for entry in entries] == [1, 2, 3]
    assert [entry["exception"] for entry in entries] == ["RuntimeError"] * 3
    assert [entry["message"] for entry in entries] == [f"attempt {n} of 7 fails" for n in (1, 2, 3)]
    assert all(began - 1 <= entry["at"] <= time.time() + 1 for entry in entries)
    rig.assert_nothing_left(dead=1)


def test_no_retries_means_none(rig: Rig) -> None:
    """`max_retries=0` makes the first failure the last."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=0)
    def fail() -> None:
        journal.note(attempt())
        raise RuntimeError("once")

    rig.start()
    fail.send()
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[ATTEMPT] == 1
    rig.assert_nothing_left(dead=1)
    assert journal.entries == [1]


@pytest.mark.parametrize(
    ("error", "kind"), [(Invalid("no such task"), "invalid"), (BusinessReject("no credit"), "rejected")]
)
def test_what_cannot_succeed_is_not_retried(rig: Rig, error: Exception, kind: str) -> None:
    """An actor that says that its job cannot succeed gets no second attempt."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def refuse() -> None:
        journal.note(attempt())
        raise error

    rig.start()
    refuse.send()
    (letter,) = rig.wait_for_dead_letters()
    assert (letter.headers[KIND], letter.headers[REASON]) == (kind, str(error))
    rig.assert_nothing_left(dead=1)
    assert journal.entries == [1]


def test_an_error_that_the_actor_throws_on_purpose_is_final(rig: Rig) -> None:
    """Exceptions in `throws` are not retried."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, throws=(KeyError,))
    def look_up() -> None:
        raise KeyError("gone")

    rig.start()
    look_up.send()
    (letter,) = rig.wait_for_dead_letters()
    assert (letter.headers[KIND], letter.headers[ATTEMPT]) == ("permanent", 1)


def test_retry_when_decides_in_place_of_max_retries(rig: Rig) -> None:
    """`retry_when` is asked with the retries so far and the exception, and its answer counts."""
    journal = Journal()

    def until_two(retries: int, error: BaseException) -> bool:
        journal.note((retries, str(error)))
        return retries < 2

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=0, retry_when=until_two)
    def fail() -> None:
        raise RuntimeError(f"attempt {attempt()}")

    rig.start()
    fail.send()
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[ATTEMPT] == 3
    assert journal.entries == [(0, "attempt 1"), (1, "attempt 2"), (2, "attempt 3")]


def test_retry_when_that_fails_ends_in_a_dead_letter(rig: Rig) -> None:
    """A job whose `retry_when` raises is dead with its own error; it is neither lost nor held for ever."""

    def broken(retries: int, error: BaseException) -> bool:
        raise ZeroDivisionError

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, retry_when=broken)
    def fail() -> None:
        raise RuntimeError("the job's own error")

    rig.start()
    fail.send()
    (letter,) = rig.wait_for_dead_letters()
    assert "the job's own error" in letter.headers[TRACEBACK]


def test_a_retry_waits_as_long_as_it_asks_for(rig: Rig) -> None:
    """`Retry(delay=…)` is the delay before the next attempt, not a backoff."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def ask_for_a_second() -> None:
        journal.note(time.monotonic())
        if attempt() == 1:
            raise Retry("later", delay=1000)

    rig.start()
    ask_for_a_second.send()
    first, second = journal.wait_for(2)
    assert 1.0 <= second - first < 3.0


def test_a_delayed_job_runs_when_it_is_due(rig: Rig) -> None:
    """A job sent with a delay does not run before it, and runs soon after."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note() -> None:
        journal.note(time.monotonic())

    rig.start()
    sent = time.monotonic()
    note.send_with_options(delay=700)
    (ran,) = journal.wait_for(1)
    assert 0.7 <= ran - sent < 2.7
    rig.assert_nothing_left()


def test_a_snoozed_job_comes_back_without_using_an_attempt(rig: Rig) -> None:
    """A snooze is no failure: same attempt, no retry spent, and no `on_failure`."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def failed(*_facts: Any) -> None:
        journal.note("on_failure")

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_retries=0, on_failure="failed")
    def snooze_twice() -> None:
        journal.note(attempt())
        if len(journal.entries) < 3:
            raise Snooze(timedelta(milliseconds=100), "not now")

    rig.start()
    snooze_twice.send()
    assert journal.wait_for(3) == [1, 1, 1]
    rig.assert_nothing_left()
    assert journal.entries == [1, 1, 1]


def test_a_job_that_waited_too_long_expires(rig: Rig) -> None:
    """A job past its `max_age` does not run and becomes a dead letter that says so."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, max_age=100)
    def note() -> None:
        journal.note("ran")

    rig.start()
    note.send_with_options(delay=300)
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[KIND] == "expired"
    assert "age limit" in letter.headers[REASON]
    rig.assert_nothing_left(dead=1)
    assert not journal.entries


def test_a_job_past_its_time_limit_is_interrupted(rig: Rig) -> None:
    """A job that runs into its time limit is interrupted, and that is a failure of kind timeout."""
    gate = Gate()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, time_limit=300, max_retries=1)
    def hang() -> None:
        gate.wait()

    rig.start()
    hang.send()
    (letter,) = rig.wait_for_dead_letters()
    assert (letter.headers[KIND], letter.headers[ATTEMPT]) == ("timeout", 2)
    assert [entry["kind"] for entry in history(letter.headers)] == ["timeout", "timeout"]
    rig.assert_nothing_left(dead=1)


def test_an_async_actor_runs_retries_and_times_out(rig: Rig) -> None:
    """An `async def` actor has the same outcomes: it knows its attempt, is retried, and is interrupted."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, time_limit=500, max_retries=2)
    async def fail_then_hang() -> None:
        await asyncio.sleep(0)
        journal.note(attempt())
        if attempt() == 1:
            raise RuntimeError("not yet")
        if attempt() == 2:
            await asyncio.Event().wait()  # until it is cancelled

    rig.start()
    fail_then_hang.send()
    assert journal.wait_for(3) == [1, 2, 3]
    rig.assert_nothing_left()
