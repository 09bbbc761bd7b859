"""Celery: one worker process with a pool of 8 threads, on a quorum queue, acknowledging when a job ended."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

from tests.bench import queues, workers
from tests.bench.processes import figure, wait_for
from tests.bench.services import Services

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
    with workers.sqlite_place(services) as place:
        environment = place.variables(BENCH_JOBS=jobs)
        figure(SENDER, "--jobs", jobs, environment=environment)  # it sends some more, to warm up
        wait_for(lambda: (queues.ready(place.url, QUEUE) or 0) >= jobs or None, f"{jobs} jobs in {QUEUE!r}")
        command = [sys.executable, "-m", "celery", "-A", WORKER, "worker", "--loglevel", "WARNING"]
        pool = ["--pool", "threads", "--concurrency", str(workers.THREADS), "--queues", QUEUE]
        with workers.started(place, [*command, *pool], BENCH_JOBS=jobs) as worker:
            return worker.wait_for_pace().jobs_per_second
