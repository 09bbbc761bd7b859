"""A worker of stock Dramatiq with its defaults, on a queue of the same type."""

from __future__ import annotations

import os
from typing import Any

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from tests.bench.counting import counter


class QuorumQueues(RabbitmqBroker):
    """Dramatiq's broker; only the type of the queue is changed, so that both store a job equally safely."""

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        arguments: dict[str, Any] = super()._build_queue_arguments(queue_name)  # type: ignore[no-untyped-call]  # stock
        return {**arguments, "x-queue-type": "quorum"}


dramatiq.set_broker(QuorumQueues(url=os.environ["JOBS_BROKER_URL"]))
noop = dramatiq.actor(queue_name="stock", actor_name="bench_noop")(counter())
