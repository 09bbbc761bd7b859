"""An `async def` actor writes with an AsyncSession, which keeps the same rules when awaited."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from jobs.models import CreditEntry
from middleware import LedgerViolation
from middleware.effects import current_async_session, current_session
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE

from ..journal import Journal
from ..waiting import stays, wait_until
from .keyed_jobs import KeyedJobs, entries, keys, rows


@pytest.fixture
def kind() -> str:
    """Coroutines alone."""
    return "async def"


async def enter(reference: str) -> None:
    """Insert a row."""
    await current_async_session().execute(
        insert(CreditEntry).values(reference=reference, account_id="a", amount=1)
    )


def test_an_async_session_is_committed_with_the_key(jobs: KeyedJobs) -> None:
    """What is awaited on the AsyncSession, and what was added to it, is committed with the key."""

    async def act(one: str) -> None:
        session = current_async_session()
        assert isinstance(session, AsyncSession)
        await enter(one)
        async with session.begin_nested():
            await enter(f"{one} nested")
        with suppress(IntegrityError):
            async with session.begin_nested():
                await enter(one)
        session.add(CreditEntry(reference=f"{one} added", account_id="a", amount=1))
        assert await session.scalar(select(CreditEntry.reference).where(CreditEntry.reference == one)) == one

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")
    assert jobs.run(actor, "a").outcome is COMPLETED
    assert jobs.run(actor, "a").outcome is DUPLICATE
    assert entries(jobs.store) == ["a", "a added", "a nested"]


def test_an_async_session_refuses_to_end(jobs: KeyedJobs) -> None:
    """Awaiting what would end the transaction raises LedgerViolation, and swallowing that does not help."""

    async def act(one: str, swallow: bool) -> None:
        await enter(one)
        try:
            await getattr(current_async_session(), one)()
        except LedgerViolation:
            if not swallow:
                raise

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")
    for call in ("commit", "rollback", "close", "aclose", "reset", "invalidate"):
        assert isinstance(jobs.run(actor, call, False).error, LedgerViolation)
        assert isinstance(jobs.run(actor, call, True).error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_an_async_session_refuses_to_begin(jobs: KeyedJobs) -> None:
    """`async with session.begin()` and `async with session` raise LedgerViolation."""

    async def act(one: str) -> None:
        session = current_async_session()
        if one == "begin":
            async with session.begin():
                pass
        async with session:
            pass

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")
    for one in ("begin", "with"):
        assert isinstance(jobs.run(actor, one).error, LedgerViolation)
    assert keys(jobs.store) == []


def test_coroutines_have_their_own_sessions(jobs: KeyedJobs) -> None:
    """Jobs that run at the same time on one event loop do not see each other's session."""
    sessions = Journal()
    together: list[asyncio.Event] = []

    async def act(one: str) -> None:
        if jobs.store.is_sqlite:
            sessions.note(id(current_async_session()))  # one at a time there
            return
        together.append(asyncio.Event())
        if len(together) == 4:
            for event in together:
                event.set()
        await asyncio.wait_for(together[int(one)].wait(), 20) if len(together) > int(one) else None
        sessions.note(current_async_session())
        await enter(one)

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")
    messages = [jobs.send(actor, str(number)) for number in range(4)]
    for message in messages:
        assert jobs.wait_for(message).outcome is COMPLETED
    if not jobs.store.is_sqlite:
        assert len({id(session) for session in sessions.entries}) == 4


def test_a_task_of_the_actor_shares_its_session(jobs: KeyedJobs) -> None:
    """A task that the actor starts and awaits writes in the actor's transaction; a thread has no session."""
    found = Journal()

    def in_thread() -> None:
        try:
            current_session()
        except RuntimeError as error:
            found.note(str(error))

    async def act(one: str) -> None:
        await asyncio.create_task(enter(one))
        thread = threading.Thread(target=in_thread)
        thread.start()
        await asyncio.to_thread(thread.join, 20)

    assert jobs.run(jobs.declare(act, "act", idempotency_key="enter:{one}"), "a").outcome is COMPLETED
    assert entries(jobs.store) == ["a"]
    assert len(found.entries) == 1


def test_an_interrupted_coroutine_leaves_nothing(jobs: KeyedJobs) -> None:
    """A coroutine that runs into its time limit is rolled back, and its connection serves the next job."""

    async def act(one: str, sleep: bool) -> None:
        await enter(one)
        if sleep:
            await asyncio.Event().wait()  # until it is cancelled

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}", time_limit=200)
    ended = jobs.run(actor, "a", True)
    assert ended.outcome.name == "dead"
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])
    assert jobs.run(actor, "a", False).outcome is COMPLETED


def test_a_cancellation_does_not_cut_a_commit(postgresql: Store) -> None:
    """A coroutine that is cancelled while COMMIT is under way has committed; its retry is a duplicate."""
    jobs = KeyedJobs(postgresql, "async def", grace=timedelta(seconds=30))
    tasks: list[asyncio.Task[Any]] = []
    journal = Journal()

    async def act(one: str) -> None:
        await enter(one)
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        journal.note(asyncio.get_running_loop())

    with postgresql.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$"
        )
        connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON credit_entries DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION wait()"
        )
    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")
    with postgresql.engine.begin() as holder:
        holder.exec_driver_sql("SELECT pg_advisory_xact_lock(1)")
        message = jobs.send(actor, "a")
        wait_until(lambda: _waiting(postgresql), what="COMMIT to wait for the lock")
        journal.entries[0].call_soon_threadsafe(tasks[0].cancel)
        stays(lambda: not jobs.recorder.of(message), what="the job to wait for its COMMIT", seconds=0.3)
    ended = jobs.wait_for(message)
    assert isinstance(ended.error, BaseException)
    wait_until(lambda: keys(postgresql) == ["enter:a"], what="the commit to end")
    assert entries(postgresql) == ["a"]
    assert jobs.run(actor, "a").outcome is DUPLICATE
    jobs.close()


def _waiting(store: Store) -> list[Any]:
    return rows(
        store.engine,
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'",
    )


def test_the_event_loops_connections_end_with_the_worker(postgresql: Store) -> None:
    """When the worker stops, no connection of its event loop is left."""
    jobs = KeyedJobs(postgresql, "async def")

    async def act(one: str) -> None:
        await enter(one)

    assert jobs.run(jobs.declare(act, "act", idempotency_key="enter:{one}"), "a").outcome is COMPLETED
    jobs.close()
    postgresql.dispose()
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    wait_until(lambda: not rows(postgresql.fresh_engine, query), what="every connection to end")


def test_a_direct_call_on_an_event_loop_is_awaited(store: Store) -> None:
    """Outside any job, a coroutine awaits a keyed actor, which has a transaction of its own on that loop."""
    jobs = KeyedJobs(store, "async def")

    async def act(one: str) -> str:
        await enter(one)
        return "done"

    actor = jobs.declare(act, "act", idempotency_key="enter:{one}")

    async def main() -> list[Any]:
        try:
            return [await actor("a"), await actor("a")]
        finally:
            await store.dispose_async()

    assert asyncio.run(main()) == ["done", None]
    assert entries(store) == ["a"]
