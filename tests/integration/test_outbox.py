"""Is a job that was enqueued in a transaction sent if that commits, once, and never if it does not?"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from dramatiq import Message
from sqlalchemy import create_engine, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from middleware import ConfigurationError, NotEnqueued, PayloadError, enqueue, enqueue_all, enqueue_all_async
from middleware.store import Store, job_outbox

from ..brokers import QUEUE, build_quorum_broker
from ..rabbit import Rabbit
from ..waiting import stays
from .outbox_jobs import OutboxJobs, statements


def test_a_committed_job_is_sent_once_and_its_row_removed(outbox_jobs: OutboxJobs) -> None:
    """Jobs of a committed transaction run once; the effect that they follow from is there with them."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session, session.begin():
        session.execute(text("INSERT INTO accounts (id, balance) VALUES ('a', 1)"))
        sent = jobs.enqueue(session, "a", "b")
        assert not jobs.journal.entries
    jobs.assert_ran("a", "b")
    assert len({message.message_id for message in sent}) == 2


def test_a_job_of_a_transaction_that_rolled_back_is_never_sent(outbox_jobs: OutboxJobs) -> None:
    """Neither a rollback, nor an exception, nor a session closed without a commit sends anything."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session:
        jobs.enqueue(session, "rolled back")
        session.flush()
        session.rollback()
        jobs.enqueue(session, "closed")
        session.flush()
    with suppress(ZeroDivisionError), jobs.session() as session, session.begin():
        jobs.enqueue(session, "raised")
        raise ZeroDivisionError
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "committed")
    jobs.assert_ran("committed")


def test_a_savepoint_takes_its_jobs_along(outbox_jobs: OutboxJobs) -> None:
    """What was enqueued in a savepoint that is rolled back is not sent; what was in a released one is."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "before")
        with session.begin_nested():
            jobs.enqueue(session, "released")
        with suppress(ZeroDivisionError), session.begin_nested():
            jobs.enqueue(session, "flushed in a savepoint that is rolled back")
            session.flush()
            jobs.enqueue(session, "not flushed")
            raise ZeroDivisionError
        jobs.enqueue(session, "after")
    jobs.assert_ran("before", "released", "after")


def test_a_released_savepoint_sends_nothing_before_the_commit(outbox_jobs: OutboxJobs) -> None:
    """SQLAlchemy's hook fires at a savepoint's end; a rollback after it still takes the job back."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session:
        with session.begin_nested():
            jobs.enqueue(session, "released, then rolled back")
        stays(lambda: not jobs.journal.entries, what="nothing to be sent", seconds=0.5)
        session.rollback()
        jobs.enqueue(session, "committed")
        session.commit()
    jobs.assert_ran("committed")


@pytest.mark.parametrize("commits", [True, False])
def test_a_session_within_an_outer_transaction_waits_for_that(outbox_jobs: OutboxJobs, commits: bool) -> None:
    """A joined session's commit sends nothing; the end of the outer transaction decides."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.engine.connect() as connection:
        outer = connection.begin()
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            jobs.enqueue(session, "joined")
            session.commit()
        stays(lambda: not jobs.journal.entries, what="nothing to be sent", seconds=0.3)
        outer.commit() if commits else outer.rollback()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "later")
    jobs.assert_ran(*(["joined"] if commits else []), "later")


def test_a_transaction_may_be_open_for_longer_than_its_claim(postgresql: Store, rabbit: Rabbit) -> None:
    """Rows that are older than their claim when they are committed are still sent at once, and once."""
    jobs = OutboxJobs(postgresql, rabbit.url)
    jobs.start()
    relay = jobs.relay()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a")
        session.flush()
        session.execute(update(job_outbox).values(claimed_until=datetime.now(UTC) - timedelta(seconds=60)))
    jobs.assert_ran("a")
    relay.stop()
    jobs.close()


async def _enqueue_with_async_session(jobs: OutboxJobs) -> None:
    async with AsyncSession(jobs.store.async_engine) as session:
        async with session.begin():
            await enqueue_all_async(session, [jobs.note.message("a")], broker=jobs.broker)
            with suppress(ZeroDivisionError):
                async with session.begin_nested():
                    await enqueue_all_async(session, [jobs.note.message("b")], broker=jobs.broker)
                    raise ZeroDivisionError
        await enqueue_all_async(session, [jobs.note.message("c")], broker=jobs.broker)
    await jobs.store.dispose_async()


def test_an_async_session_does_the_same(outbox_jobs: OutboxJobs) -> None:
    """Jobs of an AsyncSession are sent with its commit, go with a savepoint, and with a missing commit."""
    outbox_jobs.start()
    asyncio.run(_enqueue_with_async_session(outbox_jobs))
    outbox_jobs.assert_ran("a")


def test_the_wrong_kind_of_session_is_refused(outbox_jobs: OutboxJobs) -> None:
    """An AsyncSession given to `enqueue` raises and names what to call."""
    with pytest.raises(TypeError, match=r"to be a Session, got: AsyncSession; .*enqueue_async"):
        enqueue(AsyncSession(), outbox_jobs.note.message("a"), broker=outbox_jobs.broker)  # type: ignore[arg-type]


def test_an_actor_in_place_of_its_message_is_refused(outbox_jobs: OutboxJobs) -> None:
    """An actor given to `enqueue` raises and names what makes a message of it."""
    with (
        outbox_jobs.session() as session,
        pytest.raises(TypeError, match=r"to be a Message, got: Actor; .*actor\.message\(…\)"),
    ):
        enqueue(session, outbox_jobs.note, broker=outbox_jobs.broker)  # type: ignore[arg-type]


def test_a_scoped_session_is_a_session(outbox_jobs: OutboxJobs) -> None:
    """`scoped_session`, as Flask applications use it, is taken for the session that it stands for."""
    jobs = outbox_jobs
    jobs.start()
    scoped = scoped_session(sessionmaker(jobs.store.engine))
    enqueue(scoped, jobs.note.message("a"), broker=jobs.broker)
    scoped.commit()
    scoped.remove()
    jobs.assert_ran("a")


def test_a_thousand_jobs_are_written_together(outbox_jobs: OutboxJobs) -> None:
    """Enqueueing sends nothing to the database; the commit writes all rows with one statement."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session, session.begin():
        session.execute(text("SELECT 1"))
        seen = statements(jobs.engine)
        enqueue_all(session, [jobs.note.message(n) for n in range(1000)], broker=jobs.broker)
        assert not seen
    assert len([each for each in seen if "INSERT INTO job_outbox" in each]) == 1
    jobs.assert_ran(*range(1000))


def test_a_job_that_could_not_be_sent_is_refused_in_the_transaction(outbox_jobs: OutboxJobs) -> None:
    """What `send()` refuses, `enqueue` refuses, before the first job is written."""
    jobs = outbox_jobs
    with jobs.session() as session, session.begin(), pytest.raises(PayloadError):
        enqueue_all(session, [jobs.note.message("a"), jobs.note.message(object())], broker=jobs.broker)
    assert jobs.waiting() == []


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "of another kind"])
def test_a_session_of_another_database_is_refused(outbox_jobs: OutboxJobs, is_beside: bool) -> None:
    """Nobody publishes what is written there: it is said at the call, not found out from what never ran."""
    url = outbox_jobs.store.url
    other = "postgresql+psycopg://127.0.0.1/jobs" if url.host is None else "sqlite:///jobs.sqlite3"
    engine = create_engine(url.set(database="beside") if is_beside else other)
    with Session(engine) as session, pytest.raises(NotEnqueued, match="of the database of JOBS_DATABASE_URL"):
        outbox_jobs.enqueue(session, "a")
    assert not session.new


def test_a_database_by_another_name_is_taken(outbox_jobs: OutboxJobs) -> None:
    """Who reaches the same database by another address is not taken for a stranger."""
    url = outbox_jobs.store.url
    if url.host is None:
        assert url.database
        url = url.set(database=os.path.relpath(url.database))
    else:
        url = url.set(host="localhost")
    with Session(create_engine(url)) as session:
        outbox_jobs.enqueue(session, "a")
        assert len(session.new) == 1


def test_a_broker_without_a_ledger_is_told(rabbit: Rabbit, store: Store) -> None:
    """A broker whose middleware list has no Ledger has no outbox."""
    broker = build_quorum_broker(rabbit.url)
    with Session(store.engine) as session, pytest.raises(ConfigurationError, match="with a Ledger in its"):
        enqueue(session, Message(QUEUE, "note", (), {}, {}), broker=broker)
    broker.close()
