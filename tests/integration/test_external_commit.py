"""A call that was made is confirmed, though the database is away for a moment when it is to be."""

from __future__ import annotations

import pytest

from middleware import UnknownOutcome
from middleware.effects import external_coroutines, external_threads
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE

from ..journal import Journal
from .cutting_proxy import CuttingProxy
from .external_jobs import attempts, external_actor
from .keyed_jobs import KeyedJobs, keys, rows
from .proxied_jobs import COMMIT, END_OTHERS


def test_a_confirmation_whose_answer_is_lost_counts(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store
) -> None:
    """The server commits and the answer gets lost: the job is completed, and one call was made."""
    journal = Journal()
    act = external_actor(proxied, journal.note)
    cutting_proxy.cut_after = COMMIT
    assert proxied.run(act, "a").outcome is COMPLETED
    assert not cutting_proxy.is_armed
    assert (journal.entries, attempts(postgresql)) == (["pay:a"], [(1, "confirmed")])
    assert proxied.run(act, "a").outcome is DUPLICATE


def test_a_confirmation_that_never_arrives_is_made_again(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store
) -> None:
    """The connection is lost before the server sees COMMIT: another one confirms the same call."""
    journal = Journal()
    act = external_actor(proxied, journal.note)
    cutting_proxy.cut_before = COMMIT
    assert proxied.run(act, "a").outcome is COMPLETED
    assert not cutting_proxy.is_armed
    assert (journal.entries, keys(postgresql)) == (["pay:a"], ["pay:a"])


def test_a_database_that_stays_away_leaves_an_unknown_outcome(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can write down that the call was made: the dead letter says that it was."""
    for module in (external_threads, external_coroutines):
        monkeypatch.setattr(module, "PAUSES_SECONDS", (0.05, 0.05))
    act = external_actor(proxied, lambda key: None)
    proxied.run(act, "first")
    cutting_proxy.on_cut = cutting_proxy.refuse
    cutting_proxy.cut_before = COMMIT
    error = proxied.run(act, "a").error
    assert isinstance(error, UnknownOutcome)
    assert "the call was made, and its confirmation failed" in str(error)
    (_, state), _ = attempts(postgresql)
    assert state in ("held", "unknown")  # held until its lease runs out, if that could not be written either


def test_dead_connections_in_the_pool_cost_no_attempt(postgresql_jobs: KeyedJobs) -> None:
    """After the server closed every idle connection, as in a restart, the next jobs call and complete."""
    jobs, journal = postgresql_jobs, Journal()
    act = external_actor(jobs, journal.note)
    for when in ("before", "after"):
        messages = [jobs.send(act, f"{when} {number}") for number in range(20)]
        for message in messages:
            assert jobs.wait_for(message).outcome is COMPLETED
        rows(jobs.store.fresh_engine, END_OTHERS)
    assert len(journal.entries) == 40
