"""What Celery's worker runs."""

from __future__ import annotations

from tests.bench.celery.app import app
from tests.bench.pace import ACTOR, pacer

noop = app.task(name=ACTOR)(pacer())
