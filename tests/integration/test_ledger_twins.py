"""Two deliveries of one job at the same time: one runs, the other waits a moment and is put off."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from dramatiq.asyncio import get_event_loop_thread
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from middleware import Snooze
from middleware.effects import current_async_session
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE, Snoozed

from ..journal import Journal
from ..waiting import wait_until
from .keyed_jobs import Gate, KeyedJobs, enter, entries, keys, rows

SHORT = timedelta(milliseconds=100)


def test_a_twin_of_a_running_job_is_snoozed(store: Store) -> None:
    """A second delivery, while the first runs, uses no attempt and comes back; then it is a duplicate."""
    impatient = KeyedJobs(store, "def", wait=SHORT)
    gate = Gate()

    @impatient.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        gate.pass_through()

    first = impatient.send(act, "a")
    gate.wait()
    second = impatient.send(act, "a")
    snoozed = impatient.wait_for(second)
    assert isinstance(snoozed.outcome, Snoozed)
    assert SHORT <= snoozed.outcome.delay <= 2 * SHORT
    assert isinstance(snoozed.error, Snooze)
    gate.opened.set()
    assert impatient.wait_for(first).outcome is COMPLETED
    wait_until(
        lambda: impatient.recorder.of(second)[-1].outcome is DUPLICATE, what="the twin to be a duplicate"
    )
    assert entries(store) == ["a"]
    impatient.close()


def test_a_coroutine_that_waits_for_its_twin_is_snoozed(store: Store) -> None:
    """A coroutine waits for its running twin without holding up the event loop, and is then put off."""
    jobs = KeyedJobs(store, "async def", wait=SHORT)
    running: list[asyncio.Event] = []

    async def act(one: str) -> None:
        await current_async_session().run_sync(enter, one)
        running.append(asyncio.Event())
        await asyncio.wait_for(running[0].wait(), 20)

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")
    first = jobs.send(actor, "a")
    wait_until(lambda: running, what="the first job to run")
    second = jobs.send(actor, "a")
    assert isinstance(jobs.wait_for(second).outcome, Snoozed)
    thread = get_event_loop_thread()
    assert thread is not None
    thread.loop.call_soon_threadsafe(running[0].set)
    assert jobs.wait_for(first).outcome is COMPLETED
    wait_until(lambda: jobs.recorder.of(second)[-1].outcome is DUPLICATE, what="the twin to be a duplicate")
    assert entries(store) == ["a"]
    jobs.close()


def test_a_twin_takes_over_when_the_running_job_fails(store: Store) -> None:
    """A second delivery that waits while the first runs gets the key when the first fails."""
    jobs = KeyedJobs(store, "def")
    gate = Gate()
    journal = Journal()

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        journal.note(one)
        if len(journal.entries) == 1:
            gate.pass_through()
            raise RuntimeError("the first fails")

    first = jobs.send(act, "a")
    gate.wait()
    second = jobs.send(act, "a")
    gate.opened.set()
    assert isinstance(jobs.wait_for(first).error, RuntimeError)
    assert jobs.wait_for(second).outcome is COMPLETED
    assert entries(store) == ["a"]
    jobs.close()


def test_the_wait_is_for_twins_only(postgresql: Store, kind: str) -> None:
    """The actor's own statements wait for locks as the database is configured to."""
    jobs = KeyedJobs(postgresql, kind, wait=SHORT)
    found = Journal()

    @jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None:
        found.note(session.execute(text("SELECT current_setting('lock_timeout')")).scalar())

    jobs.run(act, "a")
    assert found.entries == ["0"]
    jobs.close()


def test_the_database_ends_an_idle_transaction_after_time_limit_and_grace(
    postgresql: Store, kind: str
) -> None:
    """The transaction may be idle as long as the job may live: its own time limit plus the grace."""
    jobs = KeyedJobs(postgresql, kind, grace=timedelta(seconds=7))
    found = Journal()

    @jobs.actor("enter:{one}", time_limit=5_000)
    def act(session: Session, *_: Any) -> None:
        found.note(
            session.execute(text("SELECT current_setting('idle_in_transaction_session_timeout')")).scalar()
        )

    jobs.run(act, "a")
    message = act.message_with_options(args=("b",), time_limit=3_000)
    jobs.broker.enqueue(message)
    jobs.wait_for(message)
    assert found.entries == ["12s", "10s"]
    jobs.close()


def test_a_frozen_owner_loses_its_transaction(postgresql: Store, kind: str) -> None:
    """A job that stands still past time limit and grace cannot commit when it goes on; its key is free."""
    jobs = KeyedJobs(postgresql, kind, grace=timedelta(milliseconds=100), time_limits=False)
    gate = Gate()

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        if not gate.reached.is_set():
            gate.pass_through()  # holds the event loop as well, as a frozen process would

    message = act.message_with_options(args=("a",), time_limit=200)
    jobs.broker.enqueue(message)
    gate.wait()
    wait_until(lambda: not _transactions(postgresql), what="the database to end the idle transaction")
    gate.opened.set()
    assert isinstance(jobs.wait_for(message).error, OperationalError)
    assert (entries(postgresql), keys(postgresql)) == ([], [])
    assert jobs.run(act, "a").outcome is COMPLETED
    jobs.close()


def _transactions(store: Store) -> list[Any]:
    return rows(
        store.engine,
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = current_database() AND state = 'idle in transaction'",
    )
