"""A sender of nothing but pika's fastest adapter: confirms are pipelined, bodies are there before it starts.

It checks nothing, serves one thread and knows no timeout: the ceiling for whatever is built on pika.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import dramatiq
import pika
from pika.channel import Channel

from tests.bench import clock

QUEUE: Final = "bare"
ACTOR: Final = "bench_noop"
WINDOW: Final = 2000
"""Unconfirmed publishes at most, as many as the kit allows itself."""


class Job(NamedTuple):
    """What is known of a job before it is published."""

    body: bytes
    message_id: str
    timestamp: int


def jobs_made(number: int) -> list[Job]:
    """Return as many jobs as the kit would make."""
    messages = (message() for _ in range(number))
    return [Job(each.encode(), each.message_id, each.message_timestamp // 1000) for each in messages]


def message() -> dramatiq.Message[None]:
    """Return a message of the actor without arguments."""
    return dramatiq.Message(queue_name=QUEUE, actor_name=ACTOR, args=(), kwargs={}, options={})


def properties_of(job: Job, number: int) -> pika.BasicProperties:
    """Return the properties that the kit gives to a publish."""
    return pika.BasicProperties(
        correlation_id=str(number),
        content_type="application/json",
        delivery_mode=2,
        message_id=job.message_id,
        type=ACTOR,
        timestamp=job.timestamp,
    )


class Sender:
    """Publishes a warm-up, then the jobs, and keeps `WINDOW` of them unconfirmed.

    Parameters:
        url: of the broker.
        jobs: how many count.
    """

    def __init__(self, url: str, jobs: int) -> None:
        self._parts = [jobs_made(jobs), jobs_made(clock.warm_up(jobs))]
        self._jobs = jobs
        self._left: Iterator[Job] = iter(())
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
            publish("", QUEUE, job.body, properties_of(job, self._next_tag), mandatory=True)
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
