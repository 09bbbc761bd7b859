"""A sender of nothing but pika's fastest adapter: confirms are pipelined, bodies are there before it starts.

It checks nothing, serves one thread and knows no timeout: the ceiling for whatever is built on pika.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

import dramatiq
import pika
from pika.channel import Channel

from tests.bench import clock

QUEUE: Final = "bare"
WINDOW: Final = 2000
"""Unconfirmed publishes at most, as many as the kit allows itself."""

Publish = tuple[bytes, pika.BasicProperties]


def publishes(number: int) -> list[Publish]:
    """Return the bodies and properties that the kit writes for as many jobs."""
    return [_publish(place) for place in range(number)]


def _publish(place: int) -> Publish:
    message: dramatiq.Message[None] = dramatiq.Message(
        queue_name=QUEUE, actor_name="bench_noop", args=(), kwargs={}, options={}
    )
    properties = pika.BasicProperties(
        correlation_id=str(place),
        content_type="application/json",
        delivery_mode=2,
        message_id=message.message_id,
        type=message.actor_name,
        timestamp=message.message_timestamp // 1000,
    )
    return message.encode(), properties


class Sender:
    """Publishes a warm-up, then the jobs, and keeps `WINDOW` of them unconfirmed.

    Parameters:
        url: of the broker.
        jobs: how many count.
    """

    def __init__(self, url: str, jobs: int) -> None:
        self._parts = [publishes(jobs), publishes(clock.warm_up(jobs))]
        self._jobs = jobs
        self._left: Iterator[Publish] = iter(())
        self._unconfirmed: set[int] = set()
        self._next_tag = 1
        self._oldest = 1
        self._started = 0.0
        self._rate = 0.0
        self._connection = pika.SelectConnection(
            pika.URLParameters(url), on_open_callback=self._opened, on_close_callback=self._closed
        )

    def run(self) -> float:
        """Return jobs/s, from the first publish to the last confirm."""
        self._connection.ioloop.start()
        return self._rate

    def _opened(self, connection: pika.SelectConnection) -> None:
        connection.channel(on_open_callback=self._declare)

    def _declare(self, channel: Channel) -> None:
        self._channel = channel
        arguments = {"x-queue-type": "quorum"}
        channel.queue_declare(QUEUE, durable=True, arguments=arguments, callback=self._confirm)

    def _confirm(self, _frame: Any) -> None:
        self._channel.confirm_delivery(self._answered, callback=self._begin)

    def _begin(self, _frame: Any) -> None:
        self._left = iter(self._parts.pop())
        self._started = time.perf_counter()
        self._fill()

    def _fill(self) -> None:
        publish, unconfirmed = self._channel.basic_publish, self._unconfirmed
        while len(unconfirmed) < WINDOW and (job := next(self._left, None)) is not None:
            body, properties = job
            publish("", QUEUE, body, properties, mandatory=True)
            unconfirmed.add(self._next_tag)
            self._next_tag += 1

    def _answered(self, frame: Any) -> None:
        method = frame.method
        if not isinstance(method, pika.spec.Basic.Ack):
            raise RuntimeError("expected every publish to be confirmed, got: a refusal")
        first = self._oldest if method.multiple else method.delivery_tag
        self._unconfirmed.difference_update(range(first, method.delivery_tag + 1))
        if method.multiple:
            self._oldest = method.delivery_tag + 1
        self._fill()
        if not self._unconfirmed:
            self._ended()

    def _ended(self) -> None:
        self._rate = self._jobs / (time.perf_counter() - self._started)
        if self._parts:
            self._begin(None)
        else:
            self._connection.close()

    def _closed(self, connection: pika.SelectConnection, _reason: BaseException) -> None:
        connection.ioloop.stop()


if __name__ == "__main__":
    print(Sender(os.environ["JOBS_BROKER_URL"], clock.options().parse_args().jobs).run())
