from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import dramatiq
import pytest
from dramatiq.errors import Retry as RetryRequested

from middleware import BusinessReject, Failures, InlineBroker, Invalid, Queue
from middleware.cli.follow import follow, tell
from middleware.cli.send import tell_what_is_left
from middleware.observe import Follower, Stuck
from middleware.transport.outcome import (
    COMPLETED,
    DISCARDED,
    DUPLICATE,
    RETURNED,
    Dead,
    Outcome,
    Retry,
    Snoozed,
)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (COMPLETED, "completed on attempt 2"),
        (DUPLICATE, "duplicate: its idempotency key was spent before, so nothing ran"),
        (DISCARDED, "discarded without a dead letter"),
        (RETURNED, "returned to its queue"),
        (Snoozed(timedelta(seconds=5), "its twin runs"), "put off for 5s: its twin runs"),
        (
            Retry("transient", RetryRequested("throttled"), timedelta(seconds=1.04)),
            "attempt 2 failed (transient: throttled), again in 1s",
        ),
        (
            Retry("unexpected", OSError("disk"), timedelta(seconds=75.6)),
            "attempt 2 failed (unexpected: OSError: disk), again in 1m16s",
        ),
        (Dead("rejected", BusinessReject("no credit")), "dead letter after attempt 2 (rejected: no credit)"),
        (Dead("undecodable", None, "not JSON"), "dead letter after attempt 2 (undecodable: not JSON)"),
    ],
)
def test_every_outcome_has_words(outcome: Outcome, words: str) -> None:
    """Each outcome is told in one line with what led to it."""
    assert tell(2, outcome) == words


@pytest.fixture
def broker() -> Iterator[InlineBroker]:
    broker = InlineBroker(
        queues=[Queue(name="critical")],
        middleware=[Failures(min_backoff=timedelta(milliseconds=1), max_backoff=timedelta(milliseconds=1))],
    )
    yield broker
    broker.close()


def test_the_jobs_that_a_job_sends_are_passed_over(broker: InlineBroker) -> None:
    """A job is followed to its own end, over its retries, however many jobs it sent end before."""
    attempts: list[int] = []

    @dramatiq.actor(queue_name="critical", broker=broker)
    def child() -> None:
        raise Invalid("not the one that was sent by hand")

    @dramatiq.actor(queue_name="critical", broker=broker)
    def parent() -> None:
        for _ in range(5):
            child.send()
        attempts.append(1)
        if len(attempts) < 3:
            raise RetryRequested("not yet", delay=300)

    told: list[str] = []
    follower = Follower(broker)
    sent = [parent.send()]
    assert follow(follower, sent, told.append)
    assert [line.split(" ", 1)[1] for line in told] == [
        "attempt 1 failed (transient: not yet), again in 300ms",
        "attempt 2 failed (transient: not yet), again in 300ms",
        "completed on attempt 3",
    ]


def test_a_dead_letter_is_told(broker: InlineBroker) -> None:
    """Following says so when one of the jobs died."""

    @dramatiq.actor(queue_name="critical", broker=broker)
    def odd(number: int) -> None:
        if number % 2:
            raise Invalid("odd")

    follower = Follower(broker)
    assert not follow(follower, broker.enqueue_many([odd.message(1), odd.message(2)]), lambda line: None)


def test_patience_ends(broker: InlineBroker) -> None:
    """A job that makes no step for longer than the patience is an error that counts what is left."""

    @dramatiq.actor(queue_name="critical", broker=broker)
    def later() -> None: ...

    follower = Follower(broker)
    sent = [later.send_with_options(delay=60_000)]
    with pytest.raises(Stuck, match=r"expected 1 more jobs to end, got: no outcome for 0\.1 s"):
        list(follower.outcomes(sent, timedelta(milliseconds=100)))


def test_what_ends_with_the_process_is_told(broker: InlineBroker, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs that the followed ones sent, and that have not ended, are counted; none means silence."""

    @dramatiq.actor(queue_name="critical", broker=broker)
    def child() -> None: ...

    @dramatiq.actor(queue_name="critical", broker=broker)
    def parent(children: int) -> None:
        for _ in range(children):
            child.send_with_options(delay=60_000)

    follower = Follower(broker)
    for children in (0, 2):
        assert follow(follower, [parent.send(children)], lambda line: None)
        tell_what_is_left(broker)
    assert capsys.readouterr().err == (
        "jobsctl: jobs that these sent and that have not ended: 2; they go with this process\n"
    )
