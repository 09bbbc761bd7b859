"""What does a coroutine learn, and what does its event loop suffer, when the confirm does not come?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from dramatiq import Broker, Message
from dramatiq.middleware import Middleware

from middleware import EnqueueUnknown, NotEnqueued
from tests.brokers import QUEUE, build_middleware
from tests.fixtures_broker import MakeBroker
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

SHORT = timedelta(milliseconds=700)


def stored(rabbit: Rabbit) -> list[str]:
    """Return the ids of the messages in the queue, and empty it."""
    return [str(letter.properties.message_id) for letter in rabbit.letters(QUEUE)]


async def until(fact: Callable[[], bool]) -> None:
    """Poll a fact until a deadline, and let the event loop run meanwhile."""
    async with asyncio.timeout(20):
        while not fact():
            await asyncio.sleep(0.01)


def test_the_event_loop_runs_while_a_confirm_is_awaited(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """While the broker's answer is withheld, other coroutines run; the send returns when it comes."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))

    async def main() -> int:
        turns = 0
        proxy.holds_answers.set()
        sending = asyncio.create_task(broker.enqueue_async(message("second")))
        while turns < 50:
            await asyncio.sleep(0.002)
            turns += 1
            assert not sending.done()
        proxy.holds_answers.clear()
        await sending
        return turns

    assert asyncio.run(main()) == 50
    assert len(stored(rabbit)) == 2


class Turns(Middleware):
    """Counts the turns of an event loop, and notes the count when each message is about to be published."""

    def __init__(self) -> None:
        self.turns = 0
        self.seen: list[int] = []

    async def count(self) -> None:
        """Count until cancelled."""
        while True:
            await asyncio.sleep(0)
            self.turns += 1

    def before_enqueue(self, broker: Broker, message: Message[Any], delay: int | None) -> None:
        """Note the count."""
        self.seen.append(self.turns)


def test_many_checks_let_the_event_loop_run(make_broker: MakeBroker) -> None:
    """Other coroutines get a turn after every 200 messages that are checked and prepared."""
    turns = Turns()
    broker = make_broker(middleware=[*build_middleware(), turns])

    async def main() -> None:
        counting = asyncio.create_task(turns.count())
        await broker.enqueue_many_async([message(str(number)) for number in range(2000)])
        counting.cancel()

    asyncio.run(main())
    assert turns.seen[0] >= 9
    assert turns.seen[-1] >= 18


def test_a_confirm_that_does_not_come_is_unknown(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """Written but unconfirmed within the publish timeout raises EnqueueUnknown and names the message."""
    broker = make_broker(url=proxy.url, publish_timeout=SHORT)
    broker.enqueue(message("first"))
    proxy.holds_answers.set()
    second = message("second")
    with pytest.raises(EnqueueUnknown) as unknown:
        asyncio.run(broker.enqueue_async(second))
    assert unknown.value.unknown == [second]
    proxy.holds_answers.clear()


def test_a_broker_that_cannot_be_reached_stores_nothing(proxy: Proxy, make_broker: MakeBroker) -> None:
    """Without a connection an awaited send raises NotEnqueued within its deadline."""
    proxy.refuses.set()
    broker = make_broker(url=proxy.url, publish_timeout=SHORT)
    with pytest.raises(NotEnqueued, match="certainly not stored"):
        asyncio.run(broker.enqueue_async(message()))


def test_a_cancelled_send_that_is_not_written_is_never_stored(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """What a cancelled coroutine had not got onto the wire stays unpublished when the broker is back."""
    proxy.refuses.set()
    broker = make_broker(url=proxy.url)

    async def main() -> None:
        sending = asyncio.create_task(broker.enqueue_async(message("cancelled")))
        await until(lambda: proxy.refused > 0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        proxy.refuses.clear()
        await broker.enqueue_async(message("wanted"))

    asyncio.run(main())
    assert len(stored(rabbit)) == 1


def test_a_confirm_for_an_event_loop_that_has_ended_harms_nobody(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """A loop closed before its confirm comes does not disturb the publisher: it keeps its connection."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    proxy.holds_answers.set()

    loop = asyncio.new_event_loop()
    sending = loop.create_task(broker.enqueue_async(message("second")))
    loop.run_until_complete(until(lambda: rabbit.ready(QUEUE) == 2))
    assert not sending.done()
    loop.close()
    sending.get_coro().close()
    proxy.holds_answers.clear()
    broker.enqueue(message("third"))
    assert proxy.accepted == 1
    wait_until(lambda: rabbit.ready(QUEUE) == 3, what="all three to be stored")


def test_two_event_loops_share_one_publisher(rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker) -> None:
    """Coroutines of several loops in several threads send over the process's one connection."""
    broker = make_broker(url=proxy.url)

    async def main() -> None:
        await asyncio.gather(*(broker.enqueue_async(message(str(number))) for number in range(25)))

    async def both() -> None:
        await asyncio.gather(asyncio.to_thread(asyncio.run, main()), asyncio.to_thread(asyncio.run, main()))

    asyncio.run(both())
    assert proxy.accepted == 1
    assert len(stored(rabbit)) == 50
