"""A worker of stock Dramatiq with its defaults, on a queue of the same type."""

from __future__ import annotations

import os

import dramatiq

from tests.bench.pace import ACTOR, pacer
from tests.bench.stock import QuorumQueues

dramatiq.set_broker(QuorumQueues(url=os.environ["JOBS_BROKER_URL"]))
noop = dramatiq.actor(queue_name="stock", actor_name=ACTOR)(pacer())
