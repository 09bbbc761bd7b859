"""Do the frames of a message leave together, and do all bytes arrive when the network takes only some?"""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from middleware.transport.addresses import parse_urls
from middleware.transport.wire import Wire
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

LARGE = "x" * 15_000


@pytest.fixture
def proxy(rabbit: Rabbit) -> Iterator[Proxy]:
    """A proxy in front of the test's broker."""
    proxy = Proxy(rabbit.url)
    yield proxy
    proxy.close()


def test_a_message_leaves_in_one_piece(proxy: Proxy, make_broker: MakeBroker) -> None:
    """Twenty sends, one after the other, are twenty pieces on the network: all frames of each together."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("opens the connection"))
    before = proxy.pieces
    for number in range(20):
        broker.enqueue(message(str(number)))
    assert proxy.pieces - before == 20


def test_what_the_network_does_not_take_at_once_arrives_in_order(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """Megabytes sent into a network that stands still arrive whole, once and in order when it moves again."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    messages = [message(f"{number} {LARGE}") for number in range(1000)]
    proxy.holds_requests.set()
    sending = threading.Thread(target=broker.enqueue_many, args=(messages,))
    sending.start()
    sending.join(0.5)
    assert sending.is_alive()
    proxy.holds_requests.clear()
    sending.join(30)
    assert not sending.is_alive()
    arrived = [letter.body for letter in rabbit.letters(QUEUE)]
    assert arrived[1:] == [each.encode() for each in messages]


def test_what_waits_is_not_overtaken(rabbit: Rabbit, proxy: Proxy) -> None:
    """Frames written while earlier ones wait for the network follow them, even if it takes data again."""
    with rabbit.channel() as own:
        own.queue_declare(QUEUE, durable=True)
    wire = Wire(parse_urls(proxy.url), "test")
    channel = wire.channel()
    proxy.holds_requests.set()
    for number in range(1000):
        channel.basic_publish("", QUEUE, f"{number} {LARGE}".encode())
    wire._connection.flush()
    proxy.holds_requests.clear()
    wait_until(lambda: _takes_data(wire), what="the network to take data again")
    channel.basic_publish("", QUEUE, b"last")
    wire._connection.flush()
    wait_until(lambda: _pumped(wire) and rabbit.ready(QUEUE) == 1001, what="all to arrive")
    assert wire.is_open
    assert rabbit.letters(QUEUE)[-1].body == b"last"
    wire.close()


def _takes_data(wire: Wire) -> bool:
    transport: Any = wire._connection._transport
    return bool(select.select([], [transport._sock], [], 0)[1])


def _pumped(wire: Wire) -> bool:
    wire.pump(0)
    return wire.is_open
