"""Celery: one worker process with a pool of 8 threads, on a quorum queue, acknowledging when a job ended."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

from tests.bench import counting, queues
from tests.bench.processes import figure, settings, wait_for
from tests.bench.services import Services
from tests.bench.working import THREADS
from tests.bench.working import rate as rate_of

APP = "tests.bench.celery.app"
QUEUE = "celery_noop"


def missing() -> str:
    """Say what has to be installed; empty if nothing."""
    if importlib.util.find_spec("celery") is None:
        return "Celery, which `make bench` installs from deploy/requirements-bench.lock"
    return ""


def rate(services: Services, jobs: int) -> float:
    """Return no-op jobs/s of a worker in a virtual host of its own; `jobs` wait before it starts."""
    with services.virtual_host() as url, tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "rate"), Path(folder, "log")
        environment = settings(url, "sqlite://", **counting.variables(jobs, report))
        figure("tests.bench.celery.sending", jobs, environment=environment)
        wait_for(lambda: queues.ready(url, QUEUE) == jobs or None, f"{jobs} jobs in {QUEUE!r}")
        worker = [sys.executable, "-m", "celery", "-A", APP, "worker", "--loglevel", "WARNING"]
        pool = ["--pool", "threads", "--concurrency", str(THREADS), "--queues", QUEUE]
        return rate_of([*worker, *pool], environment, report, log)
