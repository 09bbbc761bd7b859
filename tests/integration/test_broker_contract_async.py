"""What does a send from a coroutine do? The same as `send()`, awaited. Each test runs on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq.brokers.stub import StubBroker

from middleware import (
    NotEnqueued,
    PayloadError,
    UnknownQueue,
    enqueue_many_async,
    send_async,
    send_with_options_async,
)
from tests.brokers import QUEUE, SHORTER_LADDER
from tests.journal import Journal
from tests.rigs import Rig


def test_a_job_sent_from_a_coroutine_runs_once(rig: Rig) -> None:
    """`send_async` returns the message when it is stored; it runs once with its arguments."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(*args: Any, **kwargs: Any) -> None:
        journal.note((args, kwargs))

    rig.start()
    message = asyncio.run(send_async(note, "a", 1, flag=True))
    assert message.args == ("a", 1)
    assert journal.wait_for(1) == [(("a", 1), {"flag": True})]
    rig.assert_nothing_left()
    assert len(journal.entries) == 1


def test_many_coroutines_send_at_the_same_time(rig: Rig) -> None:
    """Fifty coroutines that send together store fifty jobs."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    async def main() -> None:
        await asyncio.gather(*(send_async(note, number) for number in range(50)))

    rig.start()
    asyncio.run(main())
    journal.wait_for(50)
    rig.assert_nothing_left()
    assert sorted(journal.entries) == list(range(50))


@pytest.mark.parametrize("delay", [timedelta(milliseconds=300), 300], ids=["timedelta", "milliseconds"])
def test_options_travel_from_a_coroutine(rig: Rig, delay: timedelta | int) -> None:
    """`send_with_options_async` takes a delay in either form, and options of the message."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note(number: int, *, word: str) -> None:
        journal.note((number, word))

    async def main() -> dramatiq.Message[None]:
        return await send_with_options_async(
            note, args=(1,), kwargs={"word": "x"}, delay=delay, max_retries=7
        )

    rig.start()
    message = asyncio.run(main())
    assert message.options["max_retries"] == 7
    assert rig.unfinished() == 1
    assert journal.wait_for(1) == [(1, "x")]
    rig.assert_nothing_left()


@pytest.fixture
def global_broker() -> Iterator[None]:
    """Put Dramatiq's own broker back after the test."""
    before = dramatiq.get_broker()
    yield
    dramatiq.set_broker(before)


def test_many_jobs_are_awaited_together(rig: Rig, global_broker: None) -> None:
    """`enqueue_many_async` returns its messages, with or without a delay, when all are stored."""
    journal = Journal()
    dramatiq.set_broker(rig.broker)

    @dramatiq.actor(queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    messages = [note.message(number) for number in range(1000)]

    async def main() -> None:
        assert await enqueue_many_async(messages[:900]) == messages[:900]
        assert await enqueue_many_async(messages[900:], delay=timedelta(milliseconds=200)) == messages[900:]
        assert await enqueue_many_async([]) == []

    rig.start()
    asyncio.run(main())
    journal.wait_for(1000)
    rig.assert_nothing_left()
    assert sorted(journal.entries) == list(range(1000))


def test_a_wrong_argument_raises_in_the_coroutine_and_stores_nothing(rig: Rig) -> None:
    """One message of many that must not travel refuses all; the error lists them."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def take(argument: Any) -> None: ...

    messages = [take.message(1), take.message(datetime.now())]  # noqa: DTZ005  # any datetime is refused
    with pytest.raises(PayloadError) as refused:
        asyncio.run(rig.broker.enqueue_many_async(messages))
    assert refused.value.refused == messages
    stranger: dramatiq.Message[Any] = dramatiq.Message("nowhere", "take", (), {}, {})
    with pytest.raises(UnknownQueue):
        asyncio.run(rig.broker.enqueue_async(stranger))
    assert rig.unfinished() == 0


def test_a_delay_beyond_the_longest_raises_in_the_coroutine(rig: Rig) -> None:
    """The rules for delays are those of `send()`."""

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def take() -> None: ...

    with pytest.raises(NotEnqueued, match="JOBS_MAX_DELAY"):
        asyncio.run(send_with_options_async(take, delay=SHORTER_LADDER * 3))
    assert rig.unfinished() == 0


def test_an_async_actor_sends_from_its_own_event_loop(rig: Rig) -> None:
    """A job that awaits another's confirm holds up neither its event loop nor itself."""
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def second(number: int) -> None:
        journal.note(number)

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    async def first(number: int) -> None:
        await send_async(second, number)

    rig.start()
    rig.broker.enqueue_many([first.message(number) for number in range(20)])
    journal.wait_for(20)
    rig.assert_nothing_left()
    assert sorted(journal.entries) == list(range(20))


def test_a_broker_of_somebody_else_is_refused() -> None:
    """An actor of another broker raises a TypeError that says what to do."""

    @dramatiq.actor(broker=StubBroker())
    def take() -> None: ...

    with pytest.raises(TypeError, match="call send\\(\\) in a thread"):
        asyncio.run(send_async(take))
