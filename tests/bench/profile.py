"""Where does the time of one job go, by layer? `make profile`, ARGS='charge --seconds 10 --json FILE'.

Two looks at one busy worker process, each in a window of its own, with py-spy:

* Processor: whose code holds the interpreter's lock. Its shares are laid over the processor time that the
  worker counts itself; what the kernel spends of it on sockets and on waking threads has a line of its own.
* Threads: what each thread is at. What exceeds the first look is waiting for the lock or for a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.services.errors import CannotServe
from tests.bench import layers, queues
from tests.bench.account import Account
from tests.bench.charge_jobs import charges, seed
from tests.bench.pace import ACTOR
from tests.bench.services import Services
from tests.bench.workers import Place, Worker, declare, postgresql_place, running, sqlite_place

_QUEUE: Final = "critical"
_RATE: Final = 200


@dataclass(frozen=True)
class Subject:
    """A job whose time is looked at.

    Attributes:
        module: the worker's.
        jobs: how many have to wait for each second of a look, so that they do not run out.
        bodies: their messages.
        place: where they run.
        prepare: writes what they need.
    """

    module: str
    jobs: int
    bodies: Callable[[int], Sequence[bytes]]
    place: Callable[[Services], AbstractContextManager[Place]]
    prepare: Callable[[Place, int], None] = lambda place, jobs: None


SUBJECTS: Final = {
    "noop": Subject(
        "tests.bench.kit_paced", 25_000, lambda jobs: list(queues.bodies(_QUEUE, ACTOR, jobs)), sqlite_place
    ),
    "charge": Subject("tests.bench.kit_charge", 3_000, charges, postgresql_place, seed),
}


def main(arguments: Sequence[str]) -> int:
    """Profile what is asked for; 2 if nothing could be profiled."""
    options = _parser().parse_args(arguments)
    if not _py_spy().exists():
        print(f"expected py-spy beside {sys.executable}, got: nothing; run `make profile`", file=sys.stderr)
        return 2
    try:
        services = Services.given(os.environ)
    except CannotServe as problem:
        print(problem, file=sys.stderr)
        return 2
    _profile_all(options, services)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make profile", description="The time of one job, by layer.")
    parser.add_argument("subject", nargs="*", choices=SUBJECTS, help="which jobs (default: all)")
    parser.add_argument("--seconds", type=int, default=6, metavar="N", help="of each look (default: 6)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser


def _profile_all(options: argparse.Namespace, services: Services) -> None:
    found = {}
    for name in options.subject or SUBJECTS:
        account = profile(SUBJECTS[name], services, options.seconds)
        found[name] = account.record()
        print(account.text(name), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def profile(subject: Subject, services: Services, seconds: int) -> Account:
    """Look at a worker while it runs jobs.

    Raises:
        RuntimeError: py-spy failed, or the jobs ran out while it looked.
    """
    jobs = subject.jobs * (2 * seconds + 3)
    with subject.place(services) as place:
        subject.prepare(place, jobs)
        declare(place, subject.module, [_QUEUE], BENCH_JOBS=jobs)
        queues.fill(place.url, _QUEUE, subject.bodies(jobs))
        with running(place, subject.module, [_QUEUE], BENCH_JOBS=jobs) as worker:
            worker.wait_for(lambda: place.report.with_name("warm").exists() or None, "the worker to be warm")
            processor = _look(worker, seconds, "--gil")
            threads = _look(worker, seconds, "--idle")
            if place.report.exists():
                raise RuntimeError(
                    f"expected some of {jobs:,} jobs to be left at the end, got: none; give fewer --seconds"
                )
            return Account(worker.wait_for_pace(), processor, threads, looks=seconds * _RATE)


def _look(worker: Worker, seconds: int, mode: str) -> list[layers.Sample]:
    raw = worker.place.folder / "samples"
    command = [
        str(_py_spy()),
        "record",
        "--pid",
        str(worker.pid()),
        "--duration",
        str(seconds),
        "--rate",
        str(_RATE),
    ]
    command += ["--format", "raw", "--full-filenames", "--threads", "--nolineno", mode, "--output", str(raw)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"py-spy ended with exit code {done.returncode}: {done.stderr[-1000:]}")
    return list(layers.read(raw.read_text().splitlines()))


def _py_spy() -> Path:
    return Path(sys.executable).with_name("py-spy")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
