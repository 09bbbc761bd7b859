"""How many jobs a second does one worker process run, when all of them wait before it starts?"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench import counting, queues
from tests.bench.processes import booted, migrate, settings, started, wait_for
from tests.bench.services import Services

ACTOR: Final = "bench_noop"
THREADS: Final = 8


def dramatiq_command(module: str, queue: str) -> list[str]:
    """Return the command of one worker process with 8 threads, which consumes one queue."""
    worker = [sys.executable, "-m", "dramatiq", module]
    return [*worker, "--processes", "1", "--threads", str(THREADS), "--queues", queue]


def dramatiq_rate(services: Services, module: str, queue: str, jobs: int, **more: str) -> float:
    """Return jobs/s of a worker of Dramatiq, the kit's or a stock one, in a virtual host of its own.

    Parameters:
        services: where.
        module: sets the broker and declares the actor `bench_noop` with the body of `counting.counter`.
        queue: the actor's queue.
        jobs: how many wait.
        more: further variables of the worker's environment.
    """
    with services.virtual_host() as url, tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "rate"), Path(folder, "log")
        database_url = f"sqlite:///{folder}/bench.sqlite3"
        environment = settings(url, database_url, **counting.variables(jobs, report), **more)
        migrate(environment)
        command = dramatiq_command(module, queue)
        with started(command, environment, log) as first:  # it declares the queue, then makes room
            wait_for(lambda: booted(log), "a worker", first, log)
            wait_for(lambda: queues.consumers(url, queue), f"a consumer of {queue!r}", first, log)
        queues.fill(url, queue, queues.bodies(queue, ACTOR, jobs))
        return rate(command, environment, report, log)


def rate(command: Sequence[str], environment: Mapping[str, str], report: Path, log: Path) -> float:
    """Start a worker on what waits, and return the rate that it reports."""
    with started(command, environment, log) as worker:
        return wait_for(lambda: counting.rate_in(report), "all jobs to end", worker, log)
