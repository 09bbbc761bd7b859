"""A connection that is lost during COMMIT leaves no doubt whether the effect took place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from middleware import Snooze
from middleware.store import Store, job_ledger
from middleware.transport.outcome import COMPLETED, DUPLICATE, Snoozed

from ..journal import Journal
from .cutting_proxy import CuttingProxy
from .keyed_jobs import KeyedJobs, enter, entries, keys, rows
from .late_jobs import late_actor
from .proxied_jobs import COMMIT, END_OTHERS

Declare: TypeAlias = Callable[[KeyedJobs, Journal], Any]


@pytest.fixture(params=["database", "late"])
def declare(request: pytest.FixtureRequest) -> Declare:
    """Declare an actor that notes each run and enters a row, in its transaction or in its block."""
    return declare_whole if request.param == "database" else declare_late


def declare_late(jobs: KeyedJobs, journal: Journal) -> Any:
    """Declare an actor that notes each run and then enters a row."""
    return late_actor(jobs, journal.note)


def declare_whole(jobs: KeyedJobs, journal: Journal) -> Any:
    """Declare an actor that notes each run and enters a row, all in one transaction."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        journal.note(one)
        enter(session, one)

    return act


def test_a_commit_whose_answer_is_lost_has_completed(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store, declare: Declare
) -> None:
    """The server commits and the answer gets lost: the job is completed, and its actor ran once."""
    journal = Journal()
    act = declare(proxied, journal)
    cutting_proxy.cut_after = COMMIT
    assert proxied.run(act, "a").outcome is COMPLETED
    assert not cutting_proxy.is_armed
    assert (entries(postgresql), journal.entries) == (["a"], ["a"])
    assert proxied.run(act, "a").outcome is DUPLICATE


def test_a_commit_that_never_arrives_is_a_transient_failure(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store, declare: Declare
) -> None:
    """The connection is lost before the server sees COMMIT: the attempt fails, and the next one runs."""
    journal = Journal()
    act = declare(proxied, journal)
    cutting_proxy.cut_before = COMMIT
    failed = proxied.run(act, "a")
    assert isinstance(failed.error, OperationalError)
    assert not cutting_proxy.is_armed
    assert (entries(postgresql), keys(postgresql)) == ([], [])
    assert proxied.run(act, "a").outcome is COMPLETED
    assert (entries(postgresql), journal.entries) == (["a"], ["a", "a"])


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_nobody_can_ask_about_is_snoozed(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store, arrives: bool, declare: Declare
) -> None:
    """The connection is lost during COMMIT and the server cannot be reached: the job is put off."""
    act = declare(proxied, Journal())
    proxied.run(act, "first")
    cutting_proxy.on_cut = cutting_proxy.refuse
    if arrives:
        cutting_proxy.cut_after = COMMIT
    else:
        cutting_proxy.cut_before = COMMIT
    ended = proxied.run(act, "a")
    assert isinstance(ended.error, Snooze)
    assert ended.outcome == Snoozed(timedelta(seconds=5), str(ended.error))
    assert entries(postgresql) == (["a", "first"] if arrives else ["first"])


def test_a_key_spent_by_another_message_meanwhile_is_a_duplicate(
    proxied: KeyedJobs, cutting_proxy: CuttingProxy, postgresql: Store, declare: Declare
) -> None:
    """Nothing was committed, but a twin took the key before the lookup: this job is a duplicate."""
    act = declare(proxied, Journal())

    def twin() -> None:
        with postgresql.engine.begin() as connection:
            connection.execute(text(END_OTHERS))
            connection.execute(
                insert(job_ledger).values(key="enter:a", args_hash=b"", actor="act", message_id="twin")
            )

    cutting_proxy.cut_before = COMMIT
    cutting_proxy.on_cut = twin
    assert proxied.run(act, "a").outcome is DUPLICATE
    assert entries(postgresql) == []


def test_dead_connections_in_the_pool_cost_no_attempt(postgresql_jobs: KeyedJobs, declare: Declare) -> None:
    """After the server closed every idle connection, as in a restart, the next jobs complete at once."""
    jobs = postgresql_jobs
    journal = Journal()
    act = declare(jobs, journal)
    messages = [jobs.send(act, f"before {number}") for number in range(20)]
    for message in messages:
        assert jobs.wait_for(message).outcome is COMPLETED
    rows(jobs.store.fresh_engine, END_OTHERS)
    messages = [jobs.send(act, f"after {number}") for number in range(20)]
    for message in messages:
        assert jobs.wait_for(message).outcome is COMPLETED
    assert len(journal.entries) == 40


def test_a_connection_lost_in_the_actor_is_a_transient_failure(postgresql_jobs: KeyedJobs) -> None:
    """An actor whose connection dies fails as transient, even if it swallows the error."""
    jobs = postgresql_jobs

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, swallow: bool, *_: Any) -> None:
        enter(session, one)
        pid = session.execute(text("SELECT pg_backend_pid()")).scalar()
        rows(jobs.store.fresh_engine, f"SELECT pg_terminate_backend({pid}, 5000)")
        try:
            enter(session, f"{one} after")
        except OperationalError:
            if not swallow:
                raise

    for swallow in (False, True):
        ended = jobs.run(act, f"swallow {swallow}", swallow)
        assert isinstance(ended.error, OperationalError)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_what_the_database_refuses_at_commit_is_the_jobs_error(postgresql_jobs: KeyedJobs) -> None:
    """A deferred constraint that COMMIT finds violated fails the job with the database's error."""
    jobs = postgresql_jobs
    with jobs.store.engine.begin() as connection:
        connection.execute(text("CREATE TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"))

    @jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None:
        session.execute(text("INSERT INTO once VALUES (1), (1)"))

    assert isinstance(jobs.run(act, "a").error, IntegrityError)
    assert keys(jobs.store) == []
