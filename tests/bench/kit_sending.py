"""A sender of the kit with the shipped middleware list, on the shipped `critical` queue."""

from __future__ import annotations

import dramatiq

import jobs  # noqa: F401  # sets the broker
from middleware.transport.broker import JobBroker
from tests.bench import clock


@dramatiq.actor(queue_name="critical")
def bench_noop() -> None:
    """What is sent; no worker runs."""


if __name__ == "__main__":
    broker = bench_noop.broker
    assert isinstance(broker, JobBroker)
    clock.report(bench_noop.send, clock.Many(bench_noop.message, broker.enqueue_many))
