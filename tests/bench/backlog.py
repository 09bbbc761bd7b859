"""Does a worker slow down when a million jobs wait behind those that it runs?"""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.bench import queues, workers
from tests.bench.pace import ACTOR
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_JOBS: Final = 60_000
_BACKLOG: Final = 1_000_000
_QUEUE: Final = "critical"
_EMPTY: Final = "nothing behind"
_BYTES_A_JOB: Final = 4096
"""Of disk, with room to spare: a quorum queue writes each message into its log and into a segment."""


def _rate(services: Services, *, backlog: int) -> float:
    jobs, behind = services.scaled(_JOBS), services.scaled(backlog) if backlog else 0
    _check_room(services, jobs + behind)
    with workers.sqlite_place(services) as place:
        module, names = "tests.bench.kit_paced", [_QUEUE]
        workers.declare(place, module, names, BENCH_JOBS=jobs)
        queues.fill(place.url, _QUEUE, queues.bodies(_QUEUE, ACTOR, jobs + behind))
        with workers.running(place, module, names, BENCH_JOBS=jobs) as worker:
            return worker.wait_for_pace().jobs_per_second


def _check_room(services: Services, jobs: int) -> None:
    """Refuse to fill the broker's disk: it would block every publisher of the machine.

    Raises:
        RuntimeError: there is too little room.
    """
    for node in services.manage("GET", "nodes").json():
        free = node["disk_free"] - node["disk_free_limit"]
        if free < jobs * _BYTES_A_JOB:
            raise RuntimeError(
                f"expected the broker's disk to have room for {jobs:,} jobs "
                f"({jobs * _BYTES_A_JOB / 2**30:.1f} GiB), got: {free / 2**30:.1f} GiB; make room"
            )


ROW: Final = Row(
    name="backlog",
    what=f"{_JOBS:,} no-op jobs with {_BACKLOG:,} more behind them in the queue, and with none",
    unit="jobs/s",
    contestants=(
        Contestant(name=KIT, measure=partial(_rate, backlog=_BACKLOG)),
        Contestant(name=_EMPTY, measure=partial(_rate, backlog=0)),
    ),
    targets=(Target(to=_EMPTY, at_least=0.90),),
    rounds=2,
)
