"""Celery: one worker process with a pool of 8 threads, on a quorum queue, acknowledging when a job ended."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.bench import counting, queues
from tests.bench.processes import figure, settings, wait_for
from tests.bench.services import Services
from tests.bench.working import THREADS
from tests.bench.working import rate as rate_of

WORKER: Final = "tests.bench.celery.noop"
SENDER: Final = "tests.bench.celery.sending"
QUEUE: Final = "celery_noop"


def missing() -> str:
    """Say what has to be installed; empty if nothing."""
    if importlib.util.find_spec("celery") is None:
        return "Celery, which `make bench` installs from deploy/requirements-bench.lock"
    return ""


def rate(services: Services, jobs: int) -> float:
    """Return no-op jobs/s of a worker in a virtual host of its own; `jobs` wait before it starts."""
    with services.virtual_host() as url, tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "rate"), Path(folder, "log")
        environment = settings(url, f"sqlite:///{folder}/unused", **counting.variables(jobs, report))
        figure(SENDER, "--jobs", jobs, environment=environment)  # it sends some more, to warm up
        wait_for(lambda: (queues.ready(url, QUEUE) or 0) >= jobs or None, f"{jobs} jobs in {QUEUE!r}")
        worker = [sys.executable, "-m", "celery", "-A", WORKER, "worker", "--loglevel", "WARNING"]
        pool = ["--pool", "threads", "--concurrency", str(THREADS), "--queues", QUEUE]
        return rate_of([*worker, *pool], environment, report, log)
