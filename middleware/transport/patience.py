"""For how long may a worker hold a delivery? What the broker allows, and what the queues need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from .queues import Queue

WAY_OUT: Final = (
    "lower prefetch or time limit, start more threads, consume fewer queues in one worker, or raise "
    "consumer_timeout on the broker and the setting with it"
)


@dataclass(frozen=True, slots=True)
class Patience:
    """What the sum is made with.

    Attributes:
        threads: of a worker. Defaults to 8, as Dramatiq's.
        consumer_timeout: after which the broker ends a channel that holds a delivery. Defaults to 30 minutes,
            the broker's default.
        grace: what a job may take beyond its time limit. Defaults to 25 seconds.
    """

    threads: int = 8
    consumer_timeout: timedelta = timedelta(minutes=30)
    grace: timedelta = timedelta(seconds=25)

    def held(self, queues: Sequence[Queue]) -> timedelta:
        """Return how long a worker of these queues may hold a delivery: a prefetched job's clock runs too.

        The queues of one worker share its threads, so their jobs may all stand before the last one.

        >>> Patience().held([Queue(name="a", prefetch=16, time_limit=timedelta(minutes=1))])
        datetime.timedelta(seconds=145)
        """
        return sum((self._rounds(each) * each.time_limit for each in queues), self.grace)

    def problem(self, queues: Sequence[Queue]) -> str:
        """Return what is wrong with the queues of one worker, or nothing; `WAY_OUT` says what to do."""
        held = self.held(queues)
        if held <= self.consumer_timeout:
            return ""
        label = ", ".join(f"queue {each.name!r}" for each in queues)
        terms = [f"ceil({each.prefetch} / {self.threads}) x {each.time_limit}" for each in queues]
        return (
            f"{label}: expected ceil(prefetch / threads) x time limit + grace to be at "
            f"most JOBS_BROKER_CONSUMER_TIMEOUT ({self.consumer_timeout}), got: {' + '.join(terms)} + "
            f"{self.grace} = {held}"
        )

    def _rounds(self, queue: Queue) -> int:
        return math.ceil(queue.prefetch / self.threads)
