"""Sends the jobs whose punctuality is measured: `python -m tests.bench.kit_delays_sending JOBS`."""

from __future__ import annotations

import sys
import time

from middleware.transport.broker import JobBroker
from tests.bench.delays import spread
from tests.bench.kit_delays import delayed


def main() -> None:
    """Send, and print how many."""
    broker, jobs = delayed.broker, int(sys.argv[1])
    assert isinstance(broker, JobBroker)
    for delay_ms, number in spread(jobs):
        messages = [delayed.message(time.time(), delay_ms / 1000) for _ in range(number)]
        broker.enqueue_many(messages, delay_ms=delay_ms)
    print(jobs)


if __name__ == "__main__":
    main()
