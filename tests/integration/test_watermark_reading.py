"""When does a process look at the watermark, so that it costs nothing and is never too late?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event

from middleware.effects.watermark import Watermark
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE

from .aged_jobs import DAY, age, aged, assert_unprovable, declare, deliver, prune
from .external_jobs import attempts, external_actor
from .keyed_jobs import KeyedJobs, entries, keys
from .late_jobs import late_actor


@contextmanager
def watermark_reads(store: Store) -> Iterator[list[str]]:
    """Note each statement that reads the watermark."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "job_watermark" in statement:
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_young_jobs_share_one_reading(jobs: KeyedJobs, effect: str) -> None:
    """One round trip a minute and process; an old job makes one of its own, in its own transaction."""
    act = declare(jobs, effect)
    deliver(jobs, aged(act, timedelta(0), "first"))
    with watermark_reads(jobs.store) as reads:
        for number in range(10):
            assert deliver(jobs, aged(act, timedelta(hours=number), str(number))).outcome is COMPLETED
        assert reads == []
        assert deliver(jobs, aged(act, 2 * DAY, "old")).outcome is COMPLETED
        assert 1 <= len(reads) <= 2  # a late one looks before it computes, and when it writes


def frozen(jobs: KeyedJobs, seconds: float) -> None:
    """Let the process's clock go on without it."""
    watermark: Watermark = jobs.ledger._watermark
    before = watermark._seconds
    watermark._seconds = lambda: before() + seconds


def test_a_reading_does_not_count_for_ever(jobs: KeyedJobs, effect: str) -> None:
    """A process that was frozen after it read looks again: it may have slept through a pruning."""
    act = declare(jobs, effect)
    deliver(jobs, aged(act, timedelta(0), "first"))
    prune(jobs.store, timedelta(hours=2))
    frozen(jobs, 61)
    assert_unprovable(deliver(jobs, aged(act, timedelta(hours=3), "a")))


def test_an_old_job_never_goes_by_a_reading(jobs: KeyedJobs, effect: str) -> None:
    """It looks in its own transaction, however fresh what its process has read before the watermark rose."""
    act = declare(jobs, effect)
    deliver(jobs, aged(act, timedelta(0), "first"))
    prune(jobs.store)
    assert_unprovable(deliver(jobs, aged(act, 130 * DAY, "a")))


def test_a_row_that_is_pruned_while_the_job_comes_is_seen(jobs: KeyedJobs) -> None:
    """The watermark is looked at after the key was inserted, not before: else a pruning fits in between."""
    act = declare(jobs, "database")
    message = aged(act, 130 * DAY, "a")
    assert deliver(jobs, message).outcome is COMPLETED
    age(jobs.store, 129 * DAY)
    transaction_open = type(jobs.ledger._database).open

    def prune_first(self: Any, connection: Any, *rest: Any) -> Any:
        if jobs.store.is_sqlite:
            return transaction_open(self, connection, *rest)  # one writer: nothing fits in between
        prune(jobs.store)
        return transaction_open(self, connection, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(jobs.ledger._database), "open", prune_first)
        ended = deliver(jobs, message)
    if jobs.store.is_sqlite:
        assert ended.outcome is DUPLICATE
    else:
        assert_unprovable(ended)
    assert entries(jobs.store) == ["a"]


def test_a_pruning_during_a_computation_is_seen(jobs: KeyedJobs) -> None:
    """A late job looks again when it writes: a twin may have been done and forgotten meanwhile."""

    def compute(one: str) -> None:
        prune(jobs.store, 100 * DAY)

    act = late_actor(jobs, compute)
    assert_unprovable(deliver(jobs, aged(act, 110 * DAY, "a")))
    assert (keys(jobs.store), entries(jobs.store)) == ([], [])


def test_a_call_that_was_made_is_confirmed(jobs: KeyedJobs) -> None:
    """An external job looked before its call; a pruning meanwhile does not take back that it was made."""
    act = external_actor(jobs, lambda key: prune(jobs.store, 100 * DAY))
    message = aged(act, 110 * DAY, "a")
    assert deliver(jobs, message).outcome is COMPLETED
    assert deliver(jobs, message).outcome is DUPLICATE
    assert attempts(jobs.store) == [(1, "confirmed")]
