"""Do the frames of a message leave together, and do all bytes arrive when the network takes only some?"""

from __future__ import annotations

import select
import threading
from typing import Any

import pytest

from middleware.transport.addresses import parse_urls
from middleware.transport.publication import READY, Publication, Result, Ticket
from middleware.transport.wire import Wire
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

LARGE = "x" * 15_000
HEADERS = {"jobs-attempt": 2}


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


@pytest.mark.parametrize("frames", ["", "?frame_max=8192"], ids=["large frames", "small frames"])
def test_a_message_arrives_whole_whichever_way_it_is_written(
    rabbit: Rabbit, make_broker: MakeBroker, frames: str
) -> None:
    """Bodies around the limit of one frame arrive byte for byte, with the same properties."""
    broker = make_broker(url=f"{rabbit.url}{frames}")
    broker.enqueue(message("declares the queue"))
    bodies = [bytes([65 + number]) * size for number, size in enumerate((1, 4087, 4088, 4089, 8184, 20_000))]
    tickets = [
        Ticket(Publication(QUEUE, READY, body, f"id {len(body)}", "actor", 7, HEADERS), lambda _ticket: None)
        for body in bodies
    ]
    broker.publisher.submit(tickets)
    wait_until(lambda: all(ticket.result is Result.CONFIRMED for ticket in tickets), what="all confirms")
    arrived = {letter.body: letter for letter in rabbit.letters(QUEUE)[1:]}
    assert set(arrived) == set(bodies)
    for body, letter in arrived.items():
        assert letter.properties.message_id == f"id {len(body)}"
        assert (letter.properties.type, letter.properties.timestamp) == ("actor", 7)
        assert letter.properties.delivery_mode == 2
        assert letter.headers["jobs-attempt"] == 2


def test_what_cannot_be_encoded_is_refused_and_harms_nobody(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """A message id too long for AMQP refuses its own message; the next has the same connection."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    wrong = Ticket(Publication(QUEUE, READY, b"body", "x" * 300), lambda _ticket: None)
    broker.publisher.submit([wrong])
    wait_until(lambda: wrong.result is not None, what="the wrong one to end")
    assert wrong.result is Result.REFUSED
    assert "cannot be encoded" in wrong.reason
    broker.enqueue(message("last"))
    assert proxy.accepted == 1
    assert rabbit.ready(QUEUE) == 2
