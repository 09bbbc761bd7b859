"""A sender of stock Dramatiq, which waits for confirms as the kit does; each thread has its connection."""

from __future__ import annotations

import os

import dramatiq

from tests.bench import clock
from tests.bench.stock import QuorumQueues

dramatiq.set_broker(QuorumQueues(url=os.environ["JOBS_BROKER_URL"], confirm_delivery=True))


@dramatiq.actor(queue_name="stock")
def bench_noop() -> None:
    """What is sent; no worker runs."""


if __name__ == "__main__":
    clock.report(bench_noop.send)
