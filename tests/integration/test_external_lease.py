"""An attempt is its worker's while its lease lives; who was overtaken can neither call nor overwrite."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from middleware import UnknownOutcome
from middleware.store import job_intents
from middleware.store.clock import Clock
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead, Snoozed

from ..journal import Journal
from ..waiting import wait_until
from .external_jobs import Rival, attempts, external_actor, lapse
from .keyed_jobs import Gate, KeyedJobs, rows

LEASE = timedelta(seconds=1)


def test_a_live_lease_puts_the_job_off(jobs: KeyedJobs) -> None:
    """A delivery that meets an attempt that has just begun calls nobody and looks again soon."""
    journal = Journal()
    act = external_actor(jobs, journal.note)
    Rival(jobs, timedelta(seconds=30))
    outcome = jobs.run(act, "a").outcome
    assert isinstance(outcome, Snoozed)
    assert timedelta(seconds=0.4) < outcome.delay < timedelta(seconds=12)
    assert journal.entries == []


@pytest.mark.parametrize(("lease", "least", "most"), [(3600, 100, 115), (60, 50, 62)])
def test_the_longer_an_attempt_lasts_the_later_it_is_looked_at(
    jobs: KeyedJobs, lease: int, least: int, most: int
) -> None:
    """One that began 100 s ago is asked about after as long again, or when its lease ends if it is sooner."""
    act = external_actor(jobs, lambda *_: None)
    Rival(jobs, timedelta(seconds=lease))
    with jobs.store.writing() as connection:
        connection.execute(update(job_intents).values(began_at=Clock(-100)))
    outcome = jobs.run(act, "a").outcome
    assert isinstance(outcome, Snoozed)
    assert timedelta(seconds=least) < outcome.delay < timedelta(seconds=most)


def test_a_lease_that_ran_out_leaves_an_unknown_outcome(jobs: KeyedJobs) -> None:
    """An attempt without confirmation or lease may have called: the job is a dead letter, nobody called."""
    journal = Journal()
    act = external_actor(jobs, journal.note)
    Rival(jobs).ask()
    ended = jobs.run(act, "a")
    assert isinstance(ended.outcome, Dead)
    assert ended.outcome.kind == "unknown_outcome"
    assert "no confirmation of attempt 1 by " in str(ended.error)
    assert (journal.entries, attempts(jobs.store)) == ([], [(1, "unknown")])


def test_an_attempt_that_did_not_come_to_ask_is_made_again(jobs: KeyedJobs) -> None:
    """A worker that died before its actor asked for its key has called nobody."""
    journal = Journal()
    act = external_actor(jobs, journal.note)
    Rival(jobs)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert attempts(jobs.store) == [(1, "released"), (2, "confirmed")]


def test_without_current_key_nobody_knows_whether_it_came_to_call(jobs: KeyedJobs) -> None:
    """If the actor never asks for its key, an attempt that died is unknown, wherever it died."""
    journal = Journal()

    def act(one: str, two: str = "2") -> None:
        journal.note(one)

    async def act_async(one: str, two: str = "2") -> None:
        journal.note(one)

    function = act if jobs.kind == "def" else act_async
    actor = jobs.declare(function, "act", idempotency_key="pay:{one}", effect="external")
    Rival(jobs)
    assert isinstance(jobs.run(actor, "a").error, UnknownOutcome)
    assert journal.entries == []


def test_the_lease_is_renewed_while_the_call_lasts(store: Any, kind: str) -> None:
    """A call that takes longer than its lease stays its worker's: a second delivery is put off."""
    jobs, gate = KeyedJobs(store, kind, lease=LEASE), Gate()
    act = external_actor(jobs, lambda key: gate.pass_through())

    def lease() -> Any:
        return rows(store.engine, "SELECT lease_until FROM job_intents")[0]

    message = jobs.send(act, "a")
    gate.wait()
    seen = [lease()]
    for _ in range(4):
        wait_until(lambda: lease() > seen[-1], what="the lease to be renewed")
        seen.append(lease())
    assert isinstance(jobs.run(act, "a").outcome, Snoozed)
    gate.opened.set()
    assert jobs.wait_for(message).outcome is COMPLETED
    jobs.close()


def test_who_lost_the_lease_does_not_call(jobs: KeyedJobs) -> None:
    """current_key() checks the lease just before the call: a worker that was frozen before it stops there."""
    gate, journal = Gate(), Journal()

    def before(one: str) -> None:
        if not gate.reached.is_set():
            gate.pass_through()

    act = external_actor(jobs, journal.note, before=before)
    message = jobs.send(act, "a")
    gate.wait()
    lapse(jobs)
    gate.opened.set()
    assert isinstance(jobs.wait_for(message).outcome, Snoozed)
    assert (journal.entries, attempts(jobs.store)) == ([], [(1, "released")])
    assert jobs.wait_for(message, 2).outcome is COMPLETED  # it came back by itself
    assert journal.entries == ["pay:a"]


def test_who_was_overtaken_does_not_call(jobs: KeyedJobs) -> None:
    """A worker that thaws after another one has called finds out before its own call."""
    gate, journal = Gate(), Journal()

    def before(one: str) -> None:
        if not gate.reached.is_set():
            gate.pass_through()

    act = external_actor(jobs, journal.note, before=before)
    first = jobs.send(act, "a")
    gate.wait()
    lapse(jobs)
    assert jobs.run(act, "a").outcome is COMPLETED
    gate.opened.set()
    assert isinstance(jobs.wait_for(first).outcome, Snoozed)
    assert jobs.wait_for(first, 2).outcome is DUPLICATE
    assert journal.entries == ["pay:a"]


def test_many_deliveries_make_one_call(store: Any, kind: str) -> None:
    """Twenty deliveries of one job at the same time: one calls, the others are put off, then duplicates."""
    jobs, journal = KeyedJobs(store, kind, threads=8, lease=LEASE), Journal()
    act = external_actor(jobs, journal.note)
    messages = [jobs.send(act, "a") for _ in range(20)]

    def outcomes() -> list[Any]:
        return [ended[-1].outcome for each in messages if (ended := jobs.recorder.of(each))]

    wait_until(lambda: sum(each in (COMPLETED, DUPLICATE) for each in outcomes()) == 20, what="all to end")
    assert (outcomes().count(COMPLETED), outcomes().count(DUPLICATE)) == (1, 19)
    assert journal.entries == ["pay:a"]
    jobs.close()
