"""A job that may have been done, and whose row may be pruned, does not run; every other one does."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from middleware import Reconciled
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from ..journal import Journal
from .aged_jobs import DAY, RETENTION, age, aged, assert_unprovable, declare, deliver, prune
from .external_jobs import attempts, external_actor
from .keyed_jobs import KeyedJobs, entries, keys


def test_a_job_is_not_done_again_after_its_row_is_pruned(jobs: KeyedJobs, effect: str) -> None:
    """Run, forgotten, delivered again: it dies as unprovable, and nothing happens twice."""
    journal = Journal()
    act = declare(jobs, effect, journal)
    message = aged(act, 130 * DAY, "a")
    assert deliver(jobs, message).outcome is COMPLETED
    assert deliver(jobs, message).outcome is DUPLICATE
    age(jobs.store, 129 * DAY)
    prune(jobs.store)
    assert (keys(jobs.store), attempts(jobs.store)) == ([], [])
    reason = assert_unprovable(deliver(jobs, message))
    assert "and no row with the key '" in reason
    assert reason.endswith("see by hand whether it took effect, and send it anew if it did not")
    assert len(journal.entries) == 1
    assert (keys(jobs.store), attempts(jobs.store), entries(jobs.store)) == ([], [], ["a"])


def test_an_old_job_with_its_row_is_a_duplicate(jobs: KeyedJobs, effect: str) -> None:
    """What the ledger still knows is known: a row younger than the watermark belongs to an older job."""
    act = declare(jobs, effect)
    message = aged(act, 130 * DAY, "a")
    assert deliver(jobs, message).outcome is COMPLETED
    prune(jobs.store)
    assert deliver(jobs, message).outcome is DUPLICATE
    assert entries(jobs.store) == ["a"]


def test_a_job_younger_than_the_watermark_runs(jobs: KeyedJobs, effect: str) -> None:
    """Long delayed, retried for weeks, or replayed: whoever is within the retention runs."""
    prune(jobs.store)
    act = declare(jobs, effect)
    for number, each in enumerate((timedelta(0), DAY, 60 * DAY, RETENTION - timedelta(minutes=5))):
        assert deliver(jobs, aged(act, each, str(number))).outcome is COMPLETED
    assert_unprovable(deliver(jobs, aged(act, RETENTION + timedelta(minutes=5), "old")))


@pytest.mark.parametrize("moment", [0, 1, 1_790_000_000], ids=["zero", "one", "seconds"])
def test_a_moment_that_is_none_is_old(jobs: KeyedJobs, effect: str, moment: int) -> None:
    """A client that writes no moment, or in seconds, can prove nothing once rows are pruned."""
    act = declare(jobs, effect)
    message = dataclasses.replace(act.message("a"), message_timestamp=moment)
    assert deliver(jobs, message).outcome is COMPLETED
    assert deliver(jobs, message).outcome is DUPLICATE
    prune(jobs.store)
    other = dataclasses.replace(act.message("b"), message_timestamp=moment)
    assert "got: 1970-01-" in assert_unprovable(deliver(jobs, other))


@pytest.mark.parametrize("ahead", [timedelta(hours=1, minutes=5), 3650 * DAY, None], ids=str)
def test_a_moment_in_the_future_proves_nothing(jobs: KeyedJobs, effect: str, ahead: timedelta | None) -> None:
    """Its row would be pruned while the job still counted as young: it does not run at all."""
    act = declare(jobs, effect)
    message = aged(act, -ahead, "a") if ahead is not None else aged(act, DAY, "a")
    if ahead is None:
        message = dataclasses.replace(message, message_timestamp=2**53 - 1)
    reason = assert_unprovable(deliver(jobs, message))
    assert "at most 1h ahead of the database's clock (2" in reason
    assert "set the sender's clock right" in reason
    assert keys(jobs.store) == []


def test_a_senders_clock_may_be_ahead_by_most_of_an_hour(jobs: KeyedJobs, effect: str) -> None:
    """It runs, and its row is kept for so much longer: pruned, it is before the watermark."""
    act = declare(jobs, effect)
    message = aged(act, timedelta(minutes=-55), "a")
    assert deliver(jobs, message).outcome is COMPLETED
    age(jobs.store, RETENTION + timedelta(minutes=55))
    prune(jobs.store)
    assert len(keys(jobs.store)) == 1
    age(jobs.store, RETENTION + timedelta(minutes=65))
    prune(jobs.store)
    assert keys(jobs.store) == []


def test_a_direct_call_is_as_young_as_can_be(jobs: KeyedJobs) -> None:
    """Called outside any job, an actor begins now."""
    jobs.broker.begin_sending()  # starts the event loop that runs an async one
    prune(jobs.store)
    declare(jobs, "database")("a")
    assert entries(jobs.store) == ["a"]


def test_a_direct_call_in_a_job_is_as_old_as_that_job(jobs: KeyedJobs) -> None:
    """What an old job without a key calls may have been done in its first delivery."""
    prune(jobs.store)
    inner = declare(jobs, "database")

    def outer(one: str) -> None:
        inner(one)

    async def outer_async(one: str) -> None:
        await inner(one)

    function = outer if jobs.kind == "def" else outer_async
    calling = jobs.declare(function, "calling")
    assert_unprovable(deliver(jobs, aged(calling, 130 * DAY, "a")))
    assert deliver(jobs, aged(calling, 60 * DAY, "b")).outcome is COMPLETED
    assert entries(jobs.store) == ["b"]


def test_an_open_attempt_survives_and_is_settled(jobs: KeyedJobs) -> None:
    """However old: nobody but the provider knows; its own rows prove the rest, and the job goes on."""
    answers = [Reconciled.UNKNOWN, Reconciled.NOT_DONE]
    journal = Journal()

    def call(key: str) -> None:
        journal.note(key)
        if len(journal.entries) == 1:
            raise TimeoutError("no answer")

    act = external_actor(jobs, call, reconcile=lambda key: answers.pop(0))
    message = aged(act, 130 * DAY, "a")
    deliver(jobs, message)
    age(jobs.store, 129 * DAY)
    prune(jobs.store)
    assert attempts(jobs.store) == [(1, "unknown")]
    ended = deliver(jobs, message)
    assert isinstance(ended.outcome, Dead)
    assert ended.outcome.kind == "unknown_outcome"
    assert deliver(jobs, message).outcome is COMPLETED
    assert attempts(jobs.store) == [(1, "released"), (2, "confirmed")]


def test_another_jobs_attempts_are_no_proof(jobs: KeyedJobs) -> None:
    """A newer job has tried the key and did nothing; an old one of the same key may have been done before."""
    prune(jobs.store)
    journal = Journal()

    def call(key: str) -> None:
        journal.note(key)
        raise ConnectionRefusedError("refused")

    act = external_actor(jobs, call)
    deliver(jobs, aged(act, DAY, "a"))
    assert attempts(jobs.store) == [(1, "released")]
    assert_unprovable(deliver(jobs, aged(act, 130 * DAY, "a")))
    assert len(journal.entries) == 1
