"""Which queues does the application have?

RabbitMQ counts a prefetched job's time as well, and closes the channel after its `consumer_timeout` of 30
minutes. Together the lines below keep ceil(prefetch ÷ threads) × time limit + grace under that, also with one
thread: 48 × 15 s + 2 × 5 min + 12 × 30 s + 25 s is 28:25.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from middleware import Queue

QUEUES: Final = (
    # Credit charges, email: short, many at a time, low latency.
    Queue(name="critical", prefetch=48, time_limit=timedelta(seconds=15)),
    # Model calls: long, few at a time; the provider's limit sets the pace.
    Queue(name="llm", prefetch=2, time_limit=timedelta(minutes=5)),
    # Resource indexing: scales on its own.
    Queue(name="indexing", prefetch=12, time_limit=timedelta(seconds=30)),
)
