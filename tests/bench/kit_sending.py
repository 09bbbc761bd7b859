"""A sender of the kit with the shipped middleware list, on the shipped `critical` queue."""

from __future__ import annotations

import dramatiq

import jobs  # noqa: F401  # sets the broker
from middleware.transport.broker import JobBroker
from tests.bench import clock


@dramatiq.actor(queue_name="critical")
def bench_noop() -> None:
    """What is sent; no worker runs."""


def send_many(number: int) -> None:
    """Make so many messages and enqueue them at once."""
    broker = bench_noop.broker
    assert isinstance(broker, JobBroker)
    broker.enqueue_many([bench_noop.message() for _ in range(number)])


if __name__ == "__main__":
    clock.report(bench_noop.send, send_many)
