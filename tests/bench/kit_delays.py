"""A worker of the kit that notes how late each delayed job began."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import dramatiq

import jobs  # noqa: F401  # sets the broker
from tests.bench.handover import hand_over

_NUMBER = int(os.environ["BENCH_JOBS"])
_REPORT = Path(os.environ["BENCH_REPORT"])
_late: list[tuple[float, float]] = []


@dramatiq.actor(queue_name="critical", actor_name="bench_delayed")
def delayed(sent: float, asked: float) -> None:
    """Note the delay that was asked for, and the time since it was over; both in seconds."""
    _late.append((asked, time.time() - sent - asked))
    if len(_late) == _NUMBER:
        hand_over(_REPORT, json.dumps(_late))
