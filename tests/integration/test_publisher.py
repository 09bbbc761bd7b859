"""What does a send promise about the message, and what does its error say when it cannot keep it?"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import timedelta

import pika.exceptions
import pytest

from middleware import EnqueueUnknown, NotEnqueued, QuorumBroker
from middleware.transport.addresses import parse_urls
from middleware.transport.publication import READY, Publication, Result, Ticket
from middleware.transport.publisher import Publisher
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.rabbit import Rabbit
from tests.strangers import message

SECOND = timedelta(seconds=1)


def test_a_send_returns_when_the_message_is_stored(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """When `send()` returns, the message lies in its queue, with properties for people who look."""
    broker = make_broker()
    sent = broker.enqueue(message())
    assert rabbit.ready(QUEUE) == 1
    (letter,) = rabbit.letters(QUEUE)
    assert letter.body == sent.encode()
    found = letter.properties
    assert (found.message_id, found.type, found.content_type) == (
        sent.message_id,
        "far_away",
        "application/json",
    )
    assert (found.delivery_mode, found.timestamp) == (2, sent.message_timestamp // 1000)


def test_twenty_thousand_jobs_arrive_completely(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """`enqueue_many` of 20,000 messages stores each of them."""
    make_broker().enqueue_many([message(str(number)) for number in range(20_000)])
    assert rabbit.ready(QUEUE) == 20_000


def test_a_full_queue_refuses(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A message that its queue refuses raises NotEnqueued and is not stored."""
    broker = make_broker()
    broker.enqueue(message())
    rabbit.set_policy(f"^{QUEUE}$", max_length=1)
    stored = 1

    def send_until_refused() -> None:
        nonlocal stored
        for _ in range(2000):  # until the policy is in force; the limit is soft by a few messages
            broker.enqueue(message())
            stored += 1

    with pytest.raises(NotEnqueued, match="nack"):
        send_until_refused()
    assert rabbit.ready(QUEUE) == stored


def test_a_queue_that_was_deleted_is_declared_again(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A send to a queue that somebody deleted declares it and stores the message once."""
    broker = make_broker()
    broker.enqueue(message())
    rabbit.delete_queue(QUEUE)
    broker.enqueue(message())
    assert rabbit.ready(QUEUE) == 1


def test_a_ladder_that_was_deleted_is_declared_again(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A delayed send whose waiting queue and exchange somebody deleted declares them and is stored once."""
    broker = make_broker()
    broker.enqueue(message(), delay=20_000)
    with rabbit.channel() as channel:
        channel.exchange_delete(f"{QUEUE}.delay.08")
        channel.queue_delete(f"{QUEUE}.delay.08")
    broker.enqueue(message(), delay=20_000)
    assert rabbit.ready(f"{QUEUE}.delay.08") == 1


def test_many_sends_at_once_to_a_deleted_ladder_lose_none_silently(
    rabbit: Rabbit, make_broker: MakeBroker
) -> None:
    """Sends that meet a deleted exchange together are stored or unknown; later ones are stored."""
    broker = make_broker()
    broker.enqueue(message(), delay=20_000)
    with rabbit.channel() as channel:
        channel.exchange_delete(f"{QUEUE}.delay.08")
    many = [message(str(number)) for number in range(20)]
    unknown: set[str] = set()
    try:
        broker.enqueue_many(many, delay_ms=20_000)
    except EnqueueUnknown as error:
        unknown = {each.message_id for each in error.unknown}
    broker.enqueue(message("later"), delay=20_000)
    stored = [str(letter.properties.message_id) for letter in rabbit.letters(f"{QUEUE}.delay.08")]
    assert {each.message_id for each in many} - set(stored) <= unknown
    assert len(stored) == len(set(stored))


def test_an_unroutable_message_of_an_unknown_topology_is_refused(rabbit: Rabbit) -> None:
    """What no queue takes, and nobody can declare a queue for, is refused after one more try."""
    ended = threading.Event()
    publisher = Publisher(parse_urls(rabbit.url), {}, "the test's publisher")
    ticket = Ticket(Publication("ghost", READY, b"{}", "1"), lambda ticket: ended.set())
    publisher.submit([ticket])
    assert ended.wait(10)
    publisher.close()
    assert ticket.result is Result.REFUSED
    assert "NO_ROUTE" in ticket.reason


def test_a_fork_gets_a_connection_of_its_own(rabbit: Rabbit) -> None:
    """After a fork, parent and child both send, each over its own connection."""
    program = [sys.executable, "-W", "ignore", "-m", "tests.programs.forking", rabbit.url]
    done = subprocess.run(program, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    texts = sorted(letter.body.split(b'"args":["')[1].split(b'"')[0] for letter in rabbit.letters(QUEUE))
    assert texts == [b"before the fork", b"by the child", b"by the parent"]


def test_a_closed_broker_refuses_at_once(make_broker: MakeBroker) -> None:
    """After `close()` a send raises NotEnqueued without waiting for its deadline."""
    broker = make_broker()
    broker.enqueue(message())
    broker.close()
    began = time.monotonic()
    with pytest.raises(NotEnqueued, match="closed"):
        broker.enqueue(message())
    assert time.monotonic() - began < 1


def test_a_queue_that_differs_refuses_at_the_sender(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A sender whose queue exists with other arguments is told which, both values and the way out."""
    with rabbit.channel() as channel:
        arguments = {"x-queue-type": "quorum", "x-dead-letter-exchange": "somewhere.else"}
        channel.queue_declare(QUEUE, durable=True, arguments=arguments)
    drift = "queue 'jobs': expected x-dead-letter-exchange to be jobs.dlx .* got: somewhere.else .* delete"
    with pytest.raises(NotEnqueued, match=drift):
        make_broker().enqueue(message())


def test_a_broker_is_built_without_a_connection(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """Building a broker connects nowhere and starts no thread."""
    before = threading.active_count()
    broker = make_broker(url="amqp://guest:guest@127.0.0.1:1/nowhere")
    assert isinstance(broker, QuorumBroker)
    assert threading.active_count() == before
    with pytest.raises(pika.exceptions.ChannelClosedByBroker), rabbit.channel() as channel:
        channel.queue_declare(QUEUE, passive=True)
