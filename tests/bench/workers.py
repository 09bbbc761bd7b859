"""How does a benchmark run a worker of Dramatiq on jobs that wait, and hear what it measured?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from tests.bench import processes, queues
from tests.bench.pace import ACTOR, Pace
from tests.bench.services import Services

T = TypeVar("T")

THREADS: Final = 8
"""Of a worker process."""


@dataclass(frozen=True)
class Place:
    """Where one measurement runs: nobody else uses it, and afterwards it is gone.

    Attributes:
        url: the virtual host.
        database_url: an SQLite file or a database with the kit's and the application's tables.
        folder: of the worker's report and log.
    """

    url: str
    database_url: str
    folder: Path

    @property
    def report(self) -> Path:
        """The file in which a worker writes what it measured."""
        return self.folder / "report"

    @property
    def log(self) -> Path:
        """What the workers print."""
        return self.folder / "log"

    def variables(self, **more: object) -> dict[str, str]:
        """Return a worker's environment."""
        texts = {name: str(value) for name, value in more.items()}
        return processes.settings(self.url, self.database_url, BENCH_REPORT=str(self.report), **texts)


@contextmanager
def sqlite_place(services: Services) -> Iterator[Place]:
    """Make a virtual host and an SQLite file with tables, for jobs that write nothing."""
    with services.virtual_host() as url, tempfile.TemporaryDirectory() as folder:
        yield _migrated(Place(url, f"sqlite:///{folder}/bench.sqlite3", Path(folder)))


@contextmanager
def postgresql_place(services: Services) -> Iterator[Place]:
    """Make a virtual host and a database with tables."""
    with (
        services.virtual_host() as url,
        services.database() as database_url,
        tempfile.TemporaryDirectory() as folder,
    ):
        yield _migrated(Place(url, database_url, Path(folder)))


def _migrated(place: Place) -> Place:
    processes.migrate(place.variables())
    return place


@dataclass(frozen=True)
class Worker:
    """A running command with one worker process, Dramatiq's or a rival's."""

    process: subprocess.Popen[bytes]
    place: Place

    def wait_for_consumers(self, names: Iterable[str]) -> None:
        """Return when a worker of Dramatiq has booted and each queue has a consumer."""
        self.wait_for(partial(processes.booted, self.place.log), "a worker")
        for name in names:
            self.wait_for(partial(queues.consumers, self.place.url, name), f"a consumer of {name!r}")

    def wait_for_pace(self) -> Pace:
        """Return what the worker measured, when its last job has ended."""
        return self.wait_for(lambda: Pace.reported(self.place.report), "all jobs to end")

    def wait_for(self, fact: Callable[[], T | None], what: str) -> T:
        """Poll until a fact is there, and return it.

        Raises:
            RuntimeError: not in time, or the worker ended; shows its last words.
        """
        return processes.wait_for(fact, what, self.process, self.place.log)

    def pid(self) -> int:
        """Return the id of the process that runs the jobs, the child of Dramatiq's first one."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(self.wait_for(lambda: children.read_text() or None, "a worker process").split()[0])


@contextmanager
def started(place: Place, command: Sequence[str], **more: object) -> Iterator[Worker]:
    """Run a worker while the block runs; `more` are further variables of its environment."""
    with processes.started(command, place.variables(**more), place.log) as process:
        yield Worker(process, place)


def running(
    place: Place, module: str, names: Sequence[str], **more: object
) -> AbstractContextManager[Worker]:
    """Run a worker of Dramatiq, the kit's or a stock one, with 8 threads while the block runs.

    Parameters:
        place: where.
        module: sets the broker and declares the actors.
        names: of the queues that it consumes.
        more: further variables of its environment.
    """
    threads = ["--processes", "1", "--threads", str(THREADS)]
    return started(place, [sys.executable, "-m", "dramatiq", module, *threads, "--queues", *names], **more)


def declare(place: Place, module: str, names: Sequence[str], **more: object) -> None:
    """Have a worker declare its queues, each in its own way, and leave them without a consumer."""
    with running(place, module, names, **more) as worker:
        worker.wait_for_consumers(names)


def pace(place: Place, module: str, name: str, bodies: Sequence[bytes], **more: object) -> Pace:
    """Return how fast a worker runs jobs that wait before it starts.

    Parameters:
        place: where.
        module: declares the jobs' actors, one of which calls what `pacer` returns at the end of each job.
        name: of the queue.
        bodies: the jobs' messages.
        more: further variables of the worker's environment.
    """
    declare(place, module, [name], BENCH_JOBS=len(bodies), **more)
    queues.fill(place.url, name, bodies)
    with running(place, module, [name], BENCH_JOBS=len(bodies), **more) as worker:
        return worker.wait_for_pace()


def noop_rate(services: Services, module: str, name: str, jobs: int) -> float:
    """Return jobs/s of a worker on no-op jobs that wait, in a virtual host of its own.

    Parameters:
        services: where.
        module: declares the actor `ACTOR` with the body of `pacer`.
        name: of its queue.
        jobs: how many wait.
    """
    with sqlite_place(services) as place:
        return pace(place, module, name, list(queues.bodies(name, ACTOR, jobs))).jobs_per_second
