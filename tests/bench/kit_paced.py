"""A worker of the kit as shipped with a no-op actor, which counts its jobs and its processor time."""

from __future__ import annotations

import dramatiq

import jobs  # noqa: F401  # sets the broker
from tests.bench.pace import ACTOR, pacer

noop = dramatiq.actor(queue_name="critical", actor_name=ACTOR)(pacer())
