"""What does a benchmark do to a queue, and see of it? From outside, past the client that is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import dramatiq
import pika
import pika.exceptions

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
    waiting = (ready(url, queue) or 0) + publish(url, queue, jobs)
    wait_for(lambda: (ready(url, queue) or 0) >= waiting or None, f"{waiting} jobs in {queue!r}")


def publish(url: str, queue: str, jobs: Iterable[bytes]) -> int:
    """Publish jobs without confirms, and return how many there were."""
    number = 0
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        properties = pika.BasicProperties(delivery_mode=_PERSISTENT)
        for body in jobs:
            channel.basic_publish("", queue, body, properties)
            number += 1
    return number


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
