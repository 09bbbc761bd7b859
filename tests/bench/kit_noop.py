"""A worker of the kit with the shipped middleware list and the shipped `critical` queue."""

from __future__ import annotations

import dramatiq

import jobs  # noqa: F401  # sets the broker
from tests.bench.counting import counter

noop = dramatiq.actor(queue_name="critical", actor_name="bench_noop")(counter())
