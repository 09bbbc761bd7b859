"""A worker of the kit that runs jobs of every shipped queue, some of which send others."""

from __future__ import annotations

import os
from pathlib import Path

import dramatiq

import jobs  # noqa: F401  # sets the broker
from jobs.queues import QUEUES

_REPORT = Path(os.environ["BENCH_REPORT"])


def _end() -> None:
    _REPORT.touch()


ends = [dramatiq.actor(queue_name=queue.name, actor_name=f"bench_end_{queue.name}")(_end) for queue in QUEUES]


@dramatiq.actor(queue_name=QUEUES[0].name, actor_name="bench_relay")
def relay() -> None:
    """Send a job to every queue."""
    for actor in ends:
        actor.send()
