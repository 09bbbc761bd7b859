"""What is sent in a test waits until the test asks what was sent, or has it run."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq import Actor
from sqlalchemy.orm import Session

from middleware import BusinessReject, LedgerViolation, enqueue
from middleware.testing import CrashPoints, HeldJobs

from ..brokers import QUEUE, SHORT_LADDER
from ..fixtures_broker import MakeRig
from ..rigs import Rig
from ..waiting import wait_until
from .crash_jobs import DEF, SQLITE, entered
from .keyed_jobs import KeyedJobs, enter, entries


class Plain:
    """Actors without a key on a broker, and what they did."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.done: list[Any] = []

    def actor(
        self, name: str, act: Callable[..., Any] = lambda *args: None, **options: Any
    ) -> Actor[..., Any]:
        """Declare an actor that does something with its two arguments, and is noted."""

        def run(one: str, two: str = "2") -> None:
            self.done.append((name, one, two))
            act(one)

        actor: Actor[..., Any] = dramatiq.actor(
            broker=self.rig.broker, queue_name=QUEUE, actor_name=name, **options
        )(run)
        return actor


@pytest.fixture
def plain(make_rig: MakeRig) -> Plain:
    """Actors on RabbitMQ, and in memory."""
    return Plain(make_rig(max_delay=SHORT_LADDER))


@pytest.fixture
def held(plain: Plain) -> Iterator[HeldJobs]:
    """What they are sent is held."""
    with HeldJobs(plain.rig.broker) as held:
        yield held


def test_what_is_sent_waits(plain: Plain, held: HeldJobs) -> None:
    """Nothing runs, and nothing reaches the broker; names and defaults of arguments make no difference."""
    note = plain.actor("note")
    note.send("a")
    note.send_with_options(args=("b",), kwargs={"two": "x"}, delay=1000)
    assert held.assert_enqueued(note, one="a", two="2").args == ("a",)
    held.assert_enqueued(note, "b", "x")
    assert [str(each) for each in held.enqueued()] == ["note('a')", "note('b', two='x')"]
    assert plain.rig.unfinished() == 0
    assert plain.done == []


@pytest.mark.parametrize(("sent", "number"), [(0, 0), (2, 2)])
def test_what_does_not_wait_once(plain: Plain, held: HeldJobs, sent: int, number: int) -> None:
    """The error says what waits instead."""
    note, other = plain.actor("note"), plain.actor("other")
    other.send("b")
    for _ in range(sent):
        note.send("a")
    with pytest.raises(AssertionError) as caught:
        held.assert_enqueued(note, "a")
    assert f"expected note('a') to wait once, got: {number} of it; what waits: other('b')" in str(
        caught.value
    )


def test_drain_runs_all(plain: Plain, held: HeldJobs) -> None:
    """What waits, what it sends, however delayed, and retries: all have ended when it returns."""
    attempts: list[str] = []

    def fail_once(one: str) -> None:
        attempts.append(one)
        if len(attempts) == 1:
            raise ConnectionError("once")

    last = plain.actor("last", fail_once)
    first = plain.actor("first", lambda one: last.send_with_options(args=(one,), delay=24_000))
    first.send("a")
    assert held.drain() == {"completed": 2}
    assert plain.done == [("first", "a", "2"), ("last", "a", "2"), ("last", "a", "2")]
    assert held.enqueued() == []
    plain.rig.assert_nothing_left()


def test_drain_raises_what_a_job_died_of(plain: Plain, held: HeldJobs) -> None:
    """The actor's own exception; or, asked for, none, and the count of dead letters."""

    def reject(one: str) -> None:
        raise BusinessReject("no credit")

    act = plain.actor("act", reject)
    act.send("a")
    with pytest.raises(BusinessReject, match="no credit"):
        held.drain()
    act.send("b")
    assert held.drain(fail_fast=False) == {"dead": 1}


def test_perform_runs_one(plain: Plain, held: HeldJobs) -> None:
    """What waited before still waits, and so does what the job sends."""
    other = plain.actor("other")
    act = plain.actor("act", lambda one: other.send(one + "!"))
    other.send("a")
    assert held.perform(act, "b") == "completed"
    assert plain.done == [("act", "b", "2")]
    assert [str(each) for each in held.enqueued()] == ["other('a')", "other('b!')"]


def test_perform_raises_what_the_actor_raised(plain: Plain, held: HeldJobs) -> None:
    """At once, without a retry."""

    def fail(one: str) -> None:
        raise ConnectionError("gone")

    act = plain.actor("act", fail)
    with pytest.raises(ConnectionError, match="gone"):
        held.perform(act, "a")
    assert plain.done == [("act", "a", "2")]
    assert held.enqueued() == []


def test_afterwards_jobs_run_as_ever(plain: Plain) -> None:
    """Leaving the block forgets what waits, and holds nothing any more."""
    note = plain.actor("note")
    with HeldJobs(plain.rig.broker) as held:
        note.send("forgotten")
        assert len(held.enqueued(note)) == 1
    plain.rig.start()
    note.send("a")
    wait_until(lambda: plain.done, what="a job that runs")
    plain.rig.assert_nothing_left()
    assert plain.done == [("note", "a", "2")]


# --- with a ledger ---


def test_a_keyed_job_is_performed_once(hasty_jobs: KeyedJobs) -> None:
    """The second is a duplicate, as for a worker."""
    act = hasty_jobs.actor("enter:{one}")(lambda session, one, two, three: enter(session, one))
    with HeldJobs(hasty_jobs.broker) as held:
        assert held.perform(act, "a") == "completed"
        assert held.perform(act, "a") == "duplicate"
    assert entries(hasty_jobs.store) == ["a"]


def test_what_a_transaction_sends_counts_when_it_commits(hasty_jobs: KeyedJobs) -> None:
    """A job's own sends, and those of the code under test in its own transaction, through the outbox."""
    note = hasty_jobs.declare(lambda one: None, "note")

    @hasty_jobs.actor("enter:{one}", max_retries=0)
    def act(session: Session, one: str, two: str, three: str) -> None:
        note.send(one)
        if one == "fails":
            raise BusinessReject(one)

    with HeldJobs(hasty_jobs.broker) as held:
        held.perform(act, "commits")
        held.assert_enqueued(note, "commits")
        with pytest.raises(BusinessReject):
            held.perform(act, "fails")
        with Session(hasty_jobs.store.engine) as session:
            enqueue(session, note.message("rolled back"), broker=hasty_jobs.broker)
            session.rollback()
            enqueue(session, note.message("mine"), broker=hasty_jobs.broker)
            session.commit()
        assert [each.args[0] for each in held.enqueued()] == ["commits", "mine"]
        assert held.drain() == {"completed": 2}


@DEF
@SQLITE
def test_the_probe_is_on(hasty_jobs: KeyedJobs) -> None:
    """An actor that opens a socket in its transaction fails the test."""

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()

    with HeldJobs(hasty_jobs.broker) as held, pytest.raises(LedgerViolation, match="a socket to"):
        held.perform(act, "a")


@DEF
@SQLITE
def test_one_at_a_time(hasty_jobs: KeyedJobs) -> None:
    """Crash points run jobs, and held jobs do not run: together they are refused."""
    act = hasty_jobs.actor("enter:{one}")(lambda session, one, two, three: enter(session, one))
    with HeldJobs(hasty_jobs.broker), pytest.raises(RuntimeError, match="one of crash_points and held_jobs"):
        CrashPoints(timeout=timedelta(seconds=2)).check(act, "a", effect=entered)
