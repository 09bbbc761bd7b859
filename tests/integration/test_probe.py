"""While its ledger transaction is open, an actor under test uses nothing but its session."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from dramatiq import Actor
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from middleware import LedgerViolation, current_async_session
from middleware.testing import CrashPoints

from .crash_jobs import DEF, SQLITE, check, clean, entered
from .keyed_jobs import KeyedJobs, enter, entries
from .late_jobs import late_actor


@pytest.fixture
def listening() -> Iterator[tuple[str, int]]:
    """The address of a server of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def actor_that(jobs: KeyedJobs, act: Callable[[Session], Any]) -> Actor[..., Any]:
    """Declare an actor that does something beside its effect."""

    @jobs.actor("enter:{one}")
    def body(session: Session, one: str, two: str, three: str) -> None:
        act(session)
        enter(session, one)

    return body


def seen(jobs: KeyedJobs, act: Callable[[Session], Any]) -> str:
    """Return what the probe says about an actor."""
    with pytest.raises(LedgerViolation) as caught:
        check(actor_that(jobs, act))
    assert entries(jobs.store) == []
    return str(caught.value)


@SQLITE
def test_a_socket(hasty_jobs: KeyedJobs, listening: tuple[str, int]) -> None:
    """A call to somebody else is refused, with the address and the way out."""

    def act(session: Session) -> None:
        with suppress(Exception):  # swallowed, and it is seen all the same
            socket.create_connection(listening).close()

    report = seen(hasty_jobs, act)
    assert f"got: a socket to {listening!r}" in report
    assert 'effect="late"' in report


def test_another_engine(hasty_jobs: KeyedJobs) -> None:
    """An engine of the actor's own is refused, on its first connection."""
    engine = create_engine("sqlite://")
    report = seen(hasty_jobs, lambda session: engine.connect().close())
    engine.dispose()
    assert "got: a connection of another engine" in report


@SQLITE
def test_a_second_connection(hasty_jobs: KeyedJobs) -> None:
    """So is a second connection of the application's engine: what it writes is another commit."""
    report = seen(hasty_jobs, lambda session: hasty_jobs.store.engine.connect().close())
    assert "a second one of the same; read and write with current_session()" in report


def in_thread(call: Callable[[], Any]) -> None:
    """Call in a thread that is started for it, and wait for its end."""
    thread = threading.Thread(target=lambda: suppressed(call))
    thread.start()
    thread.join()


def in_pool(call: Callable[[], Any]) -> None:
    """Call in a thread of a pool that was there before."""
    _POOL.submit(suppressed, call).result()


def suppressed(call: Callable[[], Any]) -> None:
    """Call, and let no error out of the thread."""
    with suppress(LedgerViolation):
        call()


_POOL = ThreadPoolExecutor(1)
_POOL.submit(int).result()


@DEF
@SQLITE
@pytest.mark.parametrize("elsewhere", [in_thread, in_pool])
def test_a_send_from_another_thread(hasty_jobs: KeyedJobs, elsewhere: Callable[..., None]) -> None:
    """It does not join the transaction: it is sent if that is rolled back, and again with each attempt."""
    note = hasty_jobs.declare(lambda: None, "note")
    report = seen(hasty_jobs, lambda session: elsewhere(note.send))
    assert "got: a send of 'note' from the thread" in report


@SQLITE
def test_a_send_from_a_coroutines_thread(hasty_jobs: KeyedJobs) -> None:
    """`asyncio.to_thread` is another thread, though it has the coroutine's context."""
    note = hasty_jobs.declare(lambda: None, "note")

    async def act(one: str) -> None:
        await current_async_session().execute(text("SELECT 1"))
        await asyncio.to_thread(suppressed, note.send)

    with pytest.raises(LedgerViolation, match="a send of 'note' from the thread"):
        check(hasty_jobs.declare(act, "act", idempotency_key="enter:{one}"))


@SQLITE
def test_what_is_allowed(hasty_jobs: KeyedJobs, listening: tuple[str, int]) -> None:
    """The actor's own sends join; threads may compute; a late actor may call before its effect."""
    note = hasty_jobs.declare(lambda: None, "note")

    def act(session: Session) -> None:
        note.send()
        in_thread(lambda: sum(range(10)))

    check(actor_that(hasty_jobs, act))
    late = late_actor(
        hasty_jobs,
        lambda one: socket.create_connection(listening).close(),
        name="late",
        idempotency_key="late:{one}",
    )
    check(late)


@DEF
@SQLITE
def test_the_probe_can_be_switched_off(hasty_jobs: KeyedJobs) -> None:
    """For an actor that has its reasons."""
    kit = CrashPoints()
    kit.probe.is_on = False
    act = actor_that(hasty_jobs, lambda session: create_engine("sqlite://").connect().close())
    assert kit.check(act, "a", effect=entered, prepare=clean)


@DEF
@SQLITE
def test_the_world_is_as_before(hasty_jobs: KeyedJobs, listening: tuple[str, int]) -> None:
    """Nothing is refused outside a test."""
    act = actor_that(hasty_jobs, lambda session: socket.create_connection(listening).close())
    with pytest.raises(LedgerViolation):
        check(act)
    assert hasty_jobs.run(act, "b").error is None
