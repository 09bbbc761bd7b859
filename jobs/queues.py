"""Which queues does the application have?

Before you add one:

* How long does RabbitMQ wait? It counts a prefetched job's time as well, and closes the channel after its
  `consumer_timeout` of 30 minutes. A worker refuses to start unless ceil(prefetch ÷ threads) × time limit,
  summed over its queues, + grace is below that. The lines below fit with one thread: 48 × 15 s + 2 × 5 min +
  12 × 30 s + 25 s is 28:25. With Dramatiq's eight (`--threads 8`) they take 7:55, which leaves room for more.
* Whose threads run it? All queues of a worker share its threads: slow jobs keep them from fast ones. Give a
  slow queue a process of its own, with as many threads as may run at a time and a prefetch of about as much:
  `dramatiq jobs --queues reports --threads 4`, and the others `--queues critical llm indexing`.
* Does somebody consume it? Every actor's queue needs a worker that is started without `--queues` or names it.

Renamed or taken out, a queue stays on the broker with what waits in it: `jobsctl queues` counts only what is
declared here, and no worker consumes the rest. Let it run empty first; `rabbitmqctl list_queues` shows it.
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
