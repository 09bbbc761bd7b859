"""A sender of Celery: from one thread, and each call returns when the broker has confirmed."""

from __future__ import annotations

from tests.bench import clock
from tests.bench.celery.app import app
from tests.bench.pace import ACTOR

if __name__ == "__main__":
    clock.report(lambda: app.send_task(ACTOR))
