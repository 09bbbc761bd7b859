"""Stock Dramatiq's broker on quorum queues, so that it stores a job as safely as the kit does."""

from __future__ import annotations

from typing import Any

from dramatiq.brokers.rabbitmq import RabbitmqBroker


class QuorumQueues(RabbitmqBroker):
    """Dramatiq's broker; nothing but the type of its queues is changed."""

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        arguments: dict[str, Any] = super()._build_queue_arguments(queue_name)  # type: ignore[no-untyped-call]  # stock
        return {**arguments, "x-queue-type": "quorum"}
