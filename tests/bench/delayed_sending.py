"""Sends jobs that wait: `python -m tests.bench.delayed_sending MODULE JOBS MILLISECONDS`.

The module is a worker's, which sets the broker and declares `bench_noop`.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

import dramatiq

from middleware.transport.broker import JobBroker
from tests.bench.pace import ACTOR

_BATCH: Final = 2_000


def main() -> None:
    """Send, and print how many."""
    importlib.import_module(sys.argv[1])
    jobs, delay_ms = int(sys.argv[2]), int(sys.argv[3])
    broker = dramatiq.get_broker()
    for first in range(0, jobs, _BATCH):
        number = min(_BATCH, jobs - first)
        _send(broker, [broker.get_actor(ACTOR).message() for _ in range(number)], delay_ms)
    print(jobs)


def _send(broker: dramatiq.Broker, messages: list[dramatiq.Message[Any]], delay_ms: int) -> None:
    if isinstance(broker, JobBroker):
        broker.enqueue_many(messages, delay_ms=delay_ms)
    else:
        for message in messages:
            broker.enqueue(message, delay=delay_ms)


if __name__ == "__main__":
    main()
