"""Does what a keyed actor sends share the fate of its effect?"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import dramatiq
from sqlalchemy.orm import Session

from middleware import publish_now, send_async
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from ..waiting import wait_until
from .keyed_jobs import enter, entries
from .late_jobs import late_actor
from .outbox_jobs import statements
from .sending_jobs import SendingJobs


def test_what_an_actor_sends_is_committed_with_its_effect(sending: SendingJobs) -> None:
    """A job that an actor sends runs once it has ended, and not while its transaction is open."""
    ended = threading.Event()

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        sending.note.send(one)
        enter(session, one)
        assert not ended.wait(0.3)
        assert sending.journal.entries == []

    assert sending.run(act, "a").outcome == COMPLETED
    assert sending.journal.wait_for(1) == [("a",)]
    assert entries(sending.store) == ["a"]
    sending.wait_until_done()


def test_what_an_actor_sends_goes_with_its_failure(sending: SendingJobs) -> None:
    """An actor that fails after a send has sent nothing."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        sending.note.send(one)
        session.flush()
        sending.note.send(one)
        raise RuntimeError("fails")

    assert isinstance(sending.run(act, "a").outcome, Dead)
    sending.wait_until_done()
    assert (sending.journal.entries, entries(sending.store)) == ([], [])


def test_a_redelivery_sends_nothing(sending: SendingJobs) -> None:
    """A second delivery of a job is a duplicate: neither its own sends nor what follows it is sent again."""

    @sending.actor("enter:{one}", on_success="note")
    def act(session: Session, one: str, *_: Any) -> int:
        enter(session, one)
        sending.note.send(one)
        return 7

    message = act.message("a")
    sending.broker.enqueue(message)
    assert sending.wait_for(message).outcome == COMPLETED
    assert len(sending.journal.wait_for(2)) == 2
    sending.put(message)
    assert sending.wait_for(message, deliveries=2).outcome == DUPLICATE
    sending.wait_until_done()
    assert len(sending.journal.entries) == 2


def test_a_savepoint_takes_what_was_sent_in_it_along(sending: SendingJobs) -> None:
    """A send in a savepoint that the actor rolls back is not sent; the others are."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        sending.note.send("before")
        with suppress(ZeroDivisionError), session.begin_nested():
            sending.note.send("inside")
            raise ZeroDivisionError
        with session.begin_nested():
            sending.note.send("released")
        enter(session, one)

    assert sending.run(act, "a").outcome == COMPLETED
    sending.wait_until_done()
    assert sorted(sending.journal.entries) == [("before",), ("released",)]


def test_groups_pipelines_and_bulk_join_as_well(sending: SendingJobs) -> None:
    """Whatever goes through the broker's `enqueue` joins: a group, a pipeline, `enqueue_many`."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        note, broker = sending.note, sending.broker
        dramatiq.group([note.message("g1"), note.message("g2")], broker=broker).run()
        dramatiq.pipeline([note.message("p1"), note.message("p2")], broker=broker).run()
        broker.enqueue_many([note.message("m1"), note.message("m2")])
        enter(session, one)
        if one == "fails":
            raise RuntimeError

    assert isinstance(sending.run(act, "fails").outcome, Dead)
    assert sending.run(act, "a").outcome == COMPLETED
    sending.broker.join_all()
    wait_until(lambda: len(sending.journal.entries) == 6, what="all six to run")
    sending.wait_until_done()
    assert {facts[0] for facts in sending.journal.entries} == {"g1", "g2", "p1", "p2", "m1", "m2"}


def test_publish_now_opts_out(sending: SendingJobs) -> None:
    """What is sent in a block of `publish_now` is sent at once, also if the actor fails after it."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        sending.note.send("joined")
        with publish_now():
            sending.note.send("now")
        assert sending.journal.wait_for(1) == [("now",)]
        sending.note.send("joined")
        raise RuntimeError

    assert isinstance(sending.run(act, "a").outcome, Dead)
    sending.wait_until_done()
    assert sending.journal.entries == [("now",)]


def test_a_thread_does_not_join(sending: SendingJobs) -> None:
    """A thread that an actor starts has no part in its transaction: what it sends is sent at once."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        thread = threading.Thread(target=sending.note.send, args=("thread",))
        thread.start()
        thread.join()
        assert sending.journal.wait_for(1) == [("thread",)]
        raise RuntimeError

    assert isinstance(sending.run(act, "a").outcome, Dead)
    sending.wait_until_done()
    assert sending.journal.entries == [("thread",)]


def test_an_async_actor_joins_with_and_without_await(store: Store) -> None:
    """`send()` and `await send_async()` join; `asyncio.to_thread` is a thread, and does not."""
    jobs = SendingJobs(store, "async def")

    async def act(one: str) -> None:
        jobs.note.send("sync")
        await send_async(jobs.note, "async")
        await asyncio.to_thread(jobs.note.send, "thread")
        await asyncio.to_thread(jobs.journal.wait_for, 1)
        if one == "fails":
            raise RuntimeError

    actor = jobs.declare(act, "act", idempotency_key="act:{one}")
    assert isinstance(jobs.run(actor, "fails").outcome, Dead)
    assert jobs.journal.entries == [("thread",)]
    assert jobs.run(actor, "a").outcome == COMPLETED
    assert sorted(jobs.journal.wait_for(4)) == [("async",), ("sync",), ("thread",), ("thread",)]
    jobs.close()


def test_a_task_that_outlives_its_actor_joins_nothing(store: Store) -> None:
    """A task that an actor leaves running sends at once after the actor's end."""
    jobs = SendingJobs(store, "async def")
    tasks: list[asyncio.Task[Any]] = []
    is_over = asyncio.Event()

    async def later() -> None:
        await is_over.wait()
        jobs.note.send("later")

    async def act(one: str) -> None:
        tasks.append(asyncio.create_task(later()))

    async def finish() -> None:
        is_over.set()

    actor = jobs.declare(act, "act", idempotency_key="act:{one}")
    assert jobs.run(actor, "a").outcome == COMPLETED
    jobs.declare(finish, "finish").send()
    assert jobs.journal.wait_for(1) == [("later",)]
    jobs.close()


def test_a_late_actor_sends_in_its_block(sending: SendingJobs) -> None:
    """What is sent in `with effect()` is committed with it; what is sent before it is sent at once."""

    def write(session: Session, one: str) -> None:
        sending.note.send("joined")
        enter(session, one)
        if one == "fails":
            raise RuntimeError

    act = late_actor(sending, compute=lambda _one: sending.note.send("at once"), write=write)
    assert isinstance(sending.run(act, "fails").outcome, Dead)
    sending.wait_until_done()
    assert sending.journal.entries == [("at once",)]
    assert sending.run(act, "a").outcome == COMPLETED
    sending.wait_until_done()
    assert sorted(sending.journal.entries) == [("at once",), ("at once",), ("joined",)]


def test_a_keyed_job_that_sends_nothing_pays_nothing(sync_sending: SendingJobs) -> None:
    """The statements of a job are the actor's own and no others go through SQLAlchemy."""

    @sync_sending.actor("enter:{one}", on_failure="note")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    sync_sending.run(act, "first")
    seen = statements(sync_sending.store.engine)
    sync_sending.run(act, "a")
    assert [each for each in seen if "job_outbox" in each] == []
    assert len([each for each in seen if each.startswith("INSERT INTO credit_entries")]) == 1
    assert len(seen) == 1


def test_a_direct_call_sends_with_its_own_commit(sync_sending: SendingJobs) -> None:
    """A keyed actor that is called as a function sends what it sends with the commit of that call."""

    @sync_sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        sync_sending.note.send(one)
        if one == "fails":
            raise RuntimeError

    with suppress(RuntimeError):
        act("fails")
    act("a")
    assert sync_sending.journal.wait_for(1) == [("a",)]
    sync_sending.wait_until_done()
    assert sync_sending.journal.entries == [("a",)]
