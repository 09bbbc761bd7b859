"""What does a benchmark do to a queue, and see of it? From outside, past the client that is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import dramatiq
import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from tests.bench.processes import wait_for

_PERSISTENT: Final = 2


def bodies(queue: str, actor: str, number: int) -> Iterable[bytes]:
    """Return jobs without arguments, as both the kit and stock Dramatiq read them."""
    for _ in range(number):
        message: dramatiq.Message[None] = dramatiq.Message(
            queue_name=queue, actor_name=actor, args=(), kwargs={}, options={}
        )
        yield message.encode()


def fill(url: str, queue: str, jobs: Iterable[bytes]) -> None:
    """Publish jobs without confirms, and return when the broker counts all of them."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        waiting = _ready(channel, queue) + _publish(channel, queue, jobs)
        # While the channel is open: rarely, a quorum queue loses what it has not taken when it is closed
        # (seen on 3.10).
        wait_for(lambda: _ready(channel, queue) >= waiting or None, f"{waiting} jobs in {queue!r}")


def publish(url: str, queue: str, jobs: Iterable[bytes]) -> None:
    """Publish a few jobs to a queue that has consumers."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        _publish(channel, queue, jobs)


def _publish(channel: BlockingChannel, queue: str, jobs: Iterable[bytes]) -> int:
    number = 0
    properties = pika.BasicProperties(delivery_mode=_PERSISTENT)
    for body in jobs:
        channel.basic_publish("", queue, body, properties)
        number += 1
    return number


def _ready(channel: BlockingChannel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def ready(url: str, queue: str) -> int | None:
    """Return how many jobs of a queue no worker holds, None if there is no such queue."""
    return _asked(url, queue, lambda answer: int(answer.method.message_count))


def consumers(url: str, queue: str) -> int | None:
    """Return how many consumers a queue has, None if it has none or is not there."""
    return _asked(url, queue, lambda answer: int(answer.method.consumer_count)) or None


def _asked(url: str, queue: str, of: Callable[[Any], int]) -> int | None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        try:
            return of(connection.channel().queue_declare(queue, passive=True))
        except pika.exceptions.ChannelClosedByBroker:
            return None
