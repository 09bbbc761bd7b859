"""How does an async actor end that is interrupted? It is cancelled, cleans up, and is settled after that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq.middleware import Middleware, Shutdown

from middleware import AsyncIO
from middleware.transport.evidence import ATTEMPT, KIND
from tests.brokers import QUEUE, build_middleware
from tests.fixtures_broker import MakeRig
from tests.journal import Gate, Journal
from tests.rigs import Rig
from tests.waiting import stays, wait_until

LONGER_THAN_DRAMATIQ_WAITS = 1.3


def with_cleanup(cleanup: timedelta, grace: timedelta = timedelta(milliseconds=200)) -> list[Middleware]:
    """Return the middleware list with another bound for what a cancelled coroutine may take."""
    return [
        AsyncIO(cleanup=cleanup) if isinstance(each, AsyncIO) else each
        for each in build_middleware(max_retries=0, grace=grace)
    ]


@pytest.fixture
def journal() -> Journal:
    """What the actors did."""
    return Journal()


def declare(rig: Rig, journal: Journal, cleanup: Callable[[], Any], **options: Any) -> Any:
    """Declare an actor that waits until it is cancelled, and then awaits its cleanup."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE, **options)
    async def act() -> None:
        journal.note("began")
        try:
            await asyncio.Event().wait()  # until it is cancelled
        except asyncio.CancelledError:
            journal.note("cancelled")
            await cleanup()
            journal.note("cleaned up")
            raise

    return act


def test_a_slow_cleanup_ends_before_the_job_is_settled(make_rig: MakeRig, journal: Journal) -> None:
    """A coroutine over its time limit may clean up for longer than a second; the job's kind stays timeout."""
    rig = make_rig(middleware=with_cleanup(timedelta(seconds=20)))
    gate = Gate()
    act = declare(rig, journal, lambda: asyncio.to_thread(gate.wait), time_limit=100)
    rig.start()
    act.send()
    journal.wait_for(2)
    stays(lambda: not rig.dead_letters(), what="the job to be unsettled", seconds=LONGER_THAN_DRAMATIQ_WAITS)
    gate.open()
    (letter,) = rig.wait_for_dead_letters()
    assert journal.entries == ["began", "cancelled", "cleaned up"]
    assert letter.headers[KIND] == "timeout"


def test_a_coroutine_that_does_not_end_is_settled_all_the_same(
    make_rig: MakeRig, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    """One that outlasts the bound of its cleanup holds its thread no longer, and the log says so."""
    rig = make_rig(middleware=with_cleanup(timedelta(milliseconds=100)))
    gate = Gate()
    act = declare(rig, journal, lambda: asyncio.to_thread(gate.wait), time_limit=100)
    rig.start()
    act.send()
    (letter,) = rig.wait_for_dead_letters()
    assert journal.entries == ["began", "cancelled"]
    assert (letter.headers[KIND], letter.headers[ATTEMPT]) == ("timeout", 1)
    assert "job.still_running" in caplog.text
    gate.open()
    journal.wait_for(3)


def test_a_shutdown_cancels_a_coroutine_and_returns_its_job(make_rig: MakeRig, journal: Journal) -> None:
    """After the grace a coroutine is cancelled and cleans up; its job is returned, not retried."""
    rig = make_rig(middleware=with_cleanup(timedelta(seconds=20)))
    gate = Gate()
    act = declare(rig, journal, lambda: asyncio.to_thread(gate.wait))
    rig.start()
    act.send()
    journal.wait_for(1)
    stopping = threading.Thread(target=rig.stop)
    stopping.start()
    journal.wait_for(2)
    stays(stopping.is_alive, what="the worker to wait for it", seconds=LONGER_THAN_DRAMATIQ_WAITS)
    gate.open()
    stopping.join(20)
    assert journal.entries == ["began", "cancelled", "cleaned up"]
    assert rig.unfinished() == 1
    assert rig.dead_letters() == []


def test_a_shutdown_cancels_what_actors_left_on_the_loop(make_rig: MakeRig, journal: Journal) -> None:
    """A background task of an actor gets its CancelledError, and time to clean up, before the loop ends."""
    rig = make_rig()
    kept: list[asyncio.Task[None]] = []

    async def background() -> None:
        try:
            await asyncio.Event().wait()  # until it is cancelled
        finally:
            await asyncio.sleep(0)
            journal.note("cleaned up")

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    async def act() -> None:
        kept.append(asyncio.create_task(background()))
        await asyncio.sleep(0)
        journal.note("ended")

    rig.start()
    act.send()
    journal.wait_for(1)
    rig.stop()
    assert journal.entries == ["ended", "cleaned up"]
    assert kept[0].cancelled()


def test_an_actors_own_interrupt_is_an_error_like_any_other(make_rig: MakeRig) -> None:
    """A coroutine that raises Dramatiq's Shutdown by itself has failed: nobody is shutting down."""
    rig = make_rig(middleware=with_cleanup(timedelta(seconds=1)))

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    async def act() -> None:
        raise Shutdown

    rig.start()
    act.send()
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[KIND] == "unexpected"
    wait_until(lambda: rig.unfinished() == 0, what="the job to be gone")
