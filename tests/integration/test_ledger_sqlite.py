"""SQLite keeps the ledger's promises: one writer at a time, in order of arrival, and every commit on disk."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from middleware.store import Store
from middleware.store.writers import WriterQueue
from middleware.transport.outcome import COMPLETED, Snoozed

from ..journal import Journal
from ..waiting import wait_until
from .keyed_jobs import Gate, KeyedJobs, enter, entries


def test_commits_reach_the_disk(sqlite_jobs: KeyedJobs) -> None:
    """Actors' connections use WAL with synchronous=FULL, and enforce foreign keys."""
    found = Journal()

    @sqlite_jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None:
        for pragma in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout"):
            found.note(session.execute(text(f"PRAGMA {pragma}")).scalar())

    sqlite_jobs.run(act, "a")
    assert found.entries == ["wal", 2, 1, 5000]


def test_a_transaction_begins_with_the_writers_lock(sqlite_jobs: KeyedJobs) -> None:
    """An actor that only reads at first has the writer's lock: it never finds its reading outdated."""
    found = Journal()
    database = sqlite_jobs.store.url.database
    assert database

    @sqlite_jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None:
        other = sqlite3.connect(database, timeout=0, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            found.note(error.sqlite_errorname)
        finally:
            other.close()

    sqlite_jobs.run(act, "a")
    assert found.entries == ["SQLITE_BUSY"]


@contextmanager
def _writing(store: Store) -> Iterator[None]:
    """Hold the writer's lock as another process would."""
    assert store.url.database
    other = sqlite3.connect(store.url.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


def test_a_job_that_waits_for_another_process_is_snoozed(sqlite: Store, kind: str) -> None:
    """Another process that writes for longer than the wait puts the job off, and costs no attempt."""
    jobs = KeyedJobs(sqlite, kind, wait=timedelta(milliseconds=50))

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    with _writing(sqlite):
        message = jobs.send(act, "a")
        assert isinstance(jobs.wait_for(message).outcome, Snoozed)
    wait_until(lambda: jobs.recorder.of(message)[-1].outcome is COMPLETED, what="the job to complete")
    assert entries(sqlite) == ["a"]
    jobs.close()


def test_jobs_write_in_order_of_arrival(sqlite: Store) -> None:
    """Threads that wait for the writer's turn get it first come, first served."""
    jobs = KeyedJobs(sqlite, "def", threads=1)
    gate, journal = Gate(), Journal()

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        journal.note(one)
        if one == "0":
            gate.pass_through()

    threads = []
    for number in range(8):
        threads.append(threading.Thread(target=act, args=(str(number),)))
        threads[-1].start()
        if number == 0:
            gate.wait()
        else:
            wait_until(partial(_is_queued, sqlite, number), what="the thread to queue")
    gate.opened.set()
    for thread in threads:
        thread.join(20)
    assert journal.entries == [str(number) for number in range(8)]


def _is_queued(store: Store, number: int) -> bool:
    return len(store.writers) == number


def test_threads_and_coroutines_take_turns() -> None:
    """One queue serves both: each gets its turn in order of arrival."""
    queue, order = WriterQueue(), Journal()
    assert queue.acquire(0)

    def in_thread() -> None:
        assert queue.acquire(20)
        order.note("thread")
        queue.release()

    async def in_coroutine(name: str) -> None:
        assert await queue.acquire_async(20)
        order.note(name)
        queue.release()

    async def main() -> None:
        first = asyncio.create_task(in_coroutine("first"))
        await _until(lambda: len(queue) == 1)
        thread = threading.Thread(target=in_thread)
        thread.start()
        await _until(lambda: len(queue) == 2)
        last = asyncio.create_task(in_coroutine("last"))
        await _until(lambda: len(queue) == 3)
        queue.release()
        await asyncio.gather(first, last)
        thread.join(20)

    asyncio.run(main())
    assert order.entries == ["first", "thread", "last"]


async def _until(fact: Any) -> None:
    async with asyncio.timeout(20):
        while not fact():
            await asyncio.sleep(0)


def test_whoever_gives_up_leaves_the_queue() -> None:
    """A wait that is too long, or cancelled, holds nobody up and takes no turn."""
    queue = WriterQueue()
    assert queue.acquire(0)
    assert not queue.acquire(0.01)

    async def main() -> None:
        assert not await queue.acquire_async(0.01)
        waiting = asyncio.create_task(queue.acquire_async(20))
        await _until(lambda: len(queue) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(queue) == 0
        # Granted and cancelled in the same moment: the turn is passed on.
        waiting = asyncio.create_task(queue.acquire_async(20))
        await _until(lambda: len(queue) == 1)
        queue.release()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await queue.acquire_async(0.01)

    asyncio.run(main())


def test_many_threads_never_share_the_turn() -> None:
    """Under contention, with waits that run out, the turn is held by one at a time and never lost."""
    queue, holders, most = WriterQueue(), [0], [0]

    def contend() -> None:
        for number in range(200):
            if queue.acquire(0.001 if number % 3 else 20):
                holders[0] += 1
                most[0] = max(most[0], holders[0])
                holders[0] -= 1
                queue.release()

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]
    assert queue.acquire(0)
