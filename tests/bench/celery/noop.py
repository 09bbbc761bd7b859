"""What Celery's worker runs."""

from __future__ import annotations

from tests.bench.celery.app import app
from tests.bench.counting import counter
from tests.bench.working import ACTOR

noop = app.task(name=ACTOR)(counter())
