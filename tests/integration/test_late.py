"""An actor with `effect="late"` computes outside any transaction; its effect takes place once as well."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from dramatiq.middleware import TimeLimitExceeded
from sqlalchemy import insert
from sqlalchemy.orm import Session

from middleware import KeyConflict, current_async_session, current_session, effect
from middleware.effects.arguments import args_hash
from middleware.store import Store, job_ledger
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from ..journal import Journal
from ..waiting import stays, wait_until
from .keyed_jobs import Gate, KeyedJobs, enter, entries, keys, rows
from .late_jobs import late_actor


def test_effect_and_key_are_committed_together(jobs: KeyedJobs) -> None:
    """What the block writes is committed with the ledger row of the job."""
    message = jobs.send(late_actor(jobs), "a")
    assert jobs.wait_for(message).outcome is COMPLETED
    assert entries(jobs.store) == ["a"]
    assert rows(jobs.store.engine, "SELECT key, actor, message_id FROM job_ledger") == [
        ("enter:a", "act", message.message_id)
    ]


def test_nothing_is_held_while_it_computes(jobs: KeyedJobs) -> None:
    """Before the block no connection is in use, and on SQLite nobody has the turn to write."""
    held: list[Any] = []

    def compute(one: str) -> None:
        held.append(jobs.store.engine.pool.checkedout())  # type: ignore[attr-defined]  # a QueuePool
        assert jobs.store.writers.acquire(5)  # the relay may have it for a moment
        jobs.store.writers.release()

    assert jobs.run(late_actor(jobs, compute), "a").outcome is COMPLETED
    assert held == [0]


def test_a_job_that_was_done_is_not_computed_again(jobs: KeyedJobs) -> None:
    """The key is looked up first: a second delivery is a duplicate that computes nothing."""
    journal = Journal()
    act = late_actor(jobs, journal.note)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert jobs.run(act, "a").outcome is DUPLICATE
    assert journal.entries == ["a"]
    assert entries(jobs.store) == ["a"]


@pytest.mark.parametrize("swallow", [LookupError, Exception])
def test_a_twin_that_comes_second_is_thrown_away(jobs: KeyedJobs, swallow: type[Exception]) -> None:
    """Twins both compute, without waiting for each other; the second to write ends as a duplicate."""
    gate, journal = Gate(), Journal()

    def compute(one: str) -> None:
        journal.note("computed")
        if len(journal.entries) == 1:
            gate.pass_through()

    def write(session: Session, one: str) -> None:
        enter(session, one)
        journal.note("written")

    act = late_actor(jobs, compute, write, swallow=swallow)
    first = jobs.send(act, "a")
    gate.wait()
    assert jobs.run(act, "a").outcome is COMPLETED
    gate.opened.set()
    assert jobs.wait_for(first).outcome is DUPLICATE
    assert journal.entries == ["computed", "computed", "written"]
    assert entries(jobs.store) == ["a"]


def test_a_twin_waits_for_one_that_is_writing(jobs: KeyedJobs) -> None:
    """Who meets a twin within its block waits for its commit, and is a duplicate then."""
    gate, journal = Gate(), Journal()

    def sync(one: str) -> None:
        journal.note(one)
        with effect() as session:
            enter(session, one)
            gate.pass_through()

    async def coroutine(one: str) -> None:
        journal.note(one)
        async with effect() as session:
            await session.run_sync(enter, one)
            await asyncio.to_thread(gate.pass_through)

    function = sync if jobs.kind == "def" else coroutine
    act = jobs.declare(function, "act", idempotency_key="enter:{one}", effect="late")
    first = jobs.send(act, "a")
    gate.wait()
    second = jobs.send(act, "a")
    journal.wait_for(2)
    gate.opened.set()
    assert {jobs.wait_for(each).outcome for each in (first, second)} == {COMPLETED, DUPLICATE}
    assert entries(jobs.store) == ["a"]


def test_other_arguments_are_a_conflict(jobs: KeyedJobs) -> None:
    """The same key with other arguments is a key_conflict, before anything is computed, and in the block."""
    gate, journal = Gate(), Journal()

    def compute(one: str) -> None:
        journal.note(one)
        if len(journal.entries) == 1:
            gate.pass_through()

    act = late_actor(jobs, compute)
    raced = jobs.send(act, "a", "x")
    gate.wait()
    assert jobs.run(act, "a", "y").outcome is COMPLETED
    gate.opened.set()
    for ended in (jobs.wait_for(raced), jobs.run(act, "a", "z")):
        assert isinstance(ended.error, KeyConflict)
        assert isinstance(ended.outcome, Dead)
        assert ended.outcome.kind == "key_conflict"
    assert journal.entries == ["a", "a"]


def test_a_block_that_raises_writes_nothing(jobs: KeyedJobs) -> None:
    """An error in the block, or before it, leaves neither effect nor key; the next attempt runs."""
    journal = Journal()

    def write(session: Session, one: str) -> None:
        enter(session, one)
        journal.note(one)
        if len(journal.entries) == 1:
            raise RuntimeError("not this time")

    act = late_actor(jobs, write=write)
    assert isinstance(jobs.run(act, "a").error, RuntimeError)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])
    assert jobs.run(act, "a").outcome is COMPLETED


def test_a_block_that_raised_may_be_entered_again(jobs: KeyedJobs) -> None:
    """What the first block wrote is undone, so a second one is the first."""
    journal = Journal()

    def write(session: Session, one: str) -> None:
        enter(session, f"{one}{len(journal.entries)}")
        journal.note(one)
        if len(journal.entries) == 1:
            raise RuntimeError("not this time")

    act = late_actor(jobs, write=write, times=2, swallow=RuntimeError)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert entries(jobs.store) == ["a1"]


@pytest.mark.parametrize("effect", ["late", "external"])
def test_what_the_block_sends_goes_with_its_commit(jobs: KeyedJobs, effect: str) -> None:
    """A send in the block joins its transaction: nothing is sent if it fails, and once if it commits."""
    sent, journal = Journal(), Journal()
    other = jobs.declare(sent.note, "other")

    def write(session: Session, one: str) -> None:
        enter(session, one)
        other.send(one)
        journal.note(one)
        if len(journal.entries) == 1:
            raise RuntimeError("not this time")

    options: dict[str, Any] = {"effect": effect, **({"on_unknown": "retry"} if effect == "external" else {})}
    act = late_actor(jobs, write=write, **options)
    assert isinstance(jobs.run(act, "a").error, RuntimeError)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert jobs.run(act, "a").outcome is DUPLICATE
    assert sent.wait_for(1) == ["a"]
    wait_until(lambda: rows(jobs.store.engine, "SELECT count(*) FROM job_outbox") == [0], what="no row")
    assert sent.entries == ["a"]


def test_a_keyed_actor_that_is_called_in_the_block_joins_it(jobs: KeyedJobs) -> None:
    """In the block, current_session() is its session, and a direct call is committed with it."""

    @jobs.actor("inner:{one}", name="inner")
    def inner(session: Session, one: str, *_: Any) -> None:
        enter(session, f"inner {one}")

    def act(one: str) -> None:
        with effect() as session:
            assert current_session() is session
            inner(one)
            enter(session, one)

    async def act_async(one: str) -> None:
        async with effect() as session:
            assert current_async_session() is session
            await inner(one)
            await session.run_sync(enter, one)

    function = act if jobs.kind == "def" else act_async
    outer = jobs.declare(function, "act", idempotency_key="enter:{one}", effect="late")
    assert jobs.run(outer, "a").outcome is COMPLETED
    assert entries(jobs.store) == ["a", "inner a"]
    assert keys(jobs.store) == ["enter:a", "inner:a"]


def test_a_direct_call_outside_a_job_takes_effect_once(store: Store) -> None:
    """Calling a late actor as a function spends its key; a second call returns None and does nothing."""
    jobs = KeyedJobs(store, "def")
    act = late_actor(jobs)
    assert act("a") == "done"
    assert act("a") is None
    assert entries(store) == ["a"]


def test_a_time_limit_ends_the_computation(jobs: KeyedJobs) -> None:
    """A job that computes for too long is interrupted; nothing is written, and its key stays free."""
    gate = Gate()

    def compute(one: str) -> None:
        while not gate.opened.wait(0.02):
            pass

    ended = jobs.run(late_actor(jobs, compute, time_limit=200), "a")
    gate.opened.set()
    assert isinstance(ended.error, TimeLimitExceeded)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_a_time_limit_does_not_cut_the_commit(postgresql: Store, kind: str) -> None:
    """A job that runs into its time limit while COMMIT is under way has committed before it ends."""
    jobs = KeyedJobs(postgresql, kind)
    with postgresql.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$"
        )
        connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON credit_entries DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION wait()"
        )
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
    )
    with postgresql.engine.begin() as holder:
        holder.exec_driver_sql("SELECT pg_advisory_xact_lock(1)")
        message = jobs.send(late_actor(jobs, time_limit=300), "a")
        wait_until(lambda: rows(postgresql.engine, waiting), what="COMMIT to wait for the lock")
        stays(lambda: not jobs.recorder.of(message), what="the job to wait for its COMMIT", seconds=0.6)
    ended = jobs.wait_for(message)
    assert ended.outcome is COMPLETED or isinstance(ended.error, TimeLimitExceeded)
    assert (entries(postgresql), keys(postgresql)) == (["a"], ["enter:a"])
    jobs.close()


def test_who_comes_second_does_nothing_more(jobs: KeyedJobs) -> None:
    """The loser is unwound even if it takes every `Exception` for an error that it can work around."""
    journal = Journal()

    def twin(one: str) -> None:
        with jobs.store.engine.begin() as connection:
            connection.execute(
                insert(job_ledger).values(
                    key="enter:a", args_hash=args_hash({"one": "a"}), actor="act", message_id="twin"
                )
            )

    def act(one: str) -> None:
        twin(one)
        with suppress(Exception), effect():
            journal.note("in the block")
        journal.note("after the block")

    async def act_async(one: str) -> None:
        await asyncio.to_thread(twin, one)
        with suppress(Exception):
            async with effect():
                journal.note("in the block")
        journal.note("after the block")

    function = act if jobs.kind == "def" else act_async
    actor = jobs.declare(function, "act", idempotency_key="enter:{one}", effect="late")
    assert jobs.run(actor, "a").outcome is DUPLICATE
    assert journal.entries == []
