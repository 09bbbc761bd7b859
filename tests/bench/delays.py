"""Do delayed jobs come when they are due, and what does a worker hold of them until then?"""

from __future__ import annotations

import json
import random
import threading
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench import processes, workers
from tests.bench.clock import p99
from tests.bench.handover import handed_over
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_ACCURATE: Final = 5_000
_HELD: Final = 100_000
_QUEUE: Final = "critical"
_WAIT_MS: Final = 3_600_000
_DELAYS: Final = 200
_SHORTEST_MS: Final = 1_000
_LONGEST_MS: Final = 20_000
_ALLOWED_SECONDS: Final = 0.1
_ALLOWED_SHARE: Final = 0.06
_STEADY_SECONDS: Final = 6
_NOISE_MIB: Final = 0.1
_pause: Final = threading.Event()


def _accuracy(services: Services) -> float:
    jobs = services.scaled(_ACCURATE)
    with workers.sqlite_place(services) as place:
        variables = place.variables(BENCH_JOBS=jobs)
        with workers.running(place, "tests.bench.kit_delays", [_QUEUE], BENCH_JOBS=jobs) as worker:
            worker.wait_for_consumers([_QUEUE])
            processes.figure("tests.bench.kit_delays_sending", jobs, environment=variables)
            report = worker.wait_for(lambda: handed_over(place.report), "all jobs to arrive")
    return p99([error_share(asked, late) for asked, late in json.loads(report)])


def spread(jobs: int) -> list[tuple[int, int]]:
    """Return delays of 1 to 20 s in milliseconds, as chance has them, each with its number of jobs.

    The longest first: sent in this order, all jobs wait at one time.

    >>> [number for _, number in spread(3)], sum(number for _, number in spread(5001))
    ([1, 1, 1], 5001)
    """
    number = min(jobs, _DELAYS)
    chance = random.Random(1)  # the same delays in every run
    chosen = sorted((chance.randint(_SHORTEST_MS, _LONGEST_MS) for _ in range(number)), reverse=True)
    return [(each, jobs // number + (place < jobs % number)) for place, each in enumerate(chosen)]


def error_share(asked: float, late: float) -> float:
    """Return how much of the allowed error a job used up, early or late: 1.0 is all of it.

    Parameters:
        asked: the delay that was asked for, in seconds.
        late: how long after that the job began, in seconds; negative if it came early.

    >>> round(error_share(asked=1.0, late=-0.05), 3), round(error_share(asked=10.0, late=0.3), 3)
    (0.5, 0.5)
    """
    return abs(late) / max(_ALLOWED_SECONDS, _ALLOWED_SHARE * asked)


def _growth(services: Services, *, module: str, queue: str) -> float:
    """Return by how many MiB a worker grows while delayed jobs of its queue come in and wait."""
    jobs = services.scaled(_HELD)
    with workers.sqlite_place(services) as place:
        variables = place.variables(BENCH_JOBS=jobs)
        with workers.running(place, module, [queue], BENCH_JOBS=jobs) as worker:
            worker.wait_for_consumers([queue])
            before = _steady_mib(worker.pid())
            processes.figure("tests.bench.delayed_sending", module, jobs, _WAIT_MS, environment=variables)
            return max(_NOISE_MIB, _steady_mib(worker.pid()) - before)


def _steady_mib(pid: int) -> float:
    """Return a process's resident memory in MiB, once it has not grown for a while."""
    most, since = 0.0, 0
    while since < _STEADY_SECONDS:
        now = resident_mib(Path(f"/proc/{pid}/status").read_text())
        most, since = (now, 0) if now > most + _NOISE_MIB else (most, since + 1)
        _pause.wait(1.0)
    return most


def resident_mib(status: str) -> float:
    """Read Linux's `/proc/PID/status`.

    >>> resident_mib("Name:\\tpython\\nVmRSS:\\t   51200 kB\\n")
    50.0
    """
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


ACCURACY: Final = Row(
    name="delay-accuracy",
    what=f"{_ACCURATE:,} jobs with delays of 1 to 20 s, an idle worker: p99 of error ÷ allowed error",
    unit="of max(100 ms, 6 %)",
    contestants=(Contestant(name=KIT, measure=_accuracy),),
    targets=(Target(at_most=1.0),),
)
MEMORY: Final = Row(
    name="delay-memory",
    what=f"growth of a worker while {_HELD:,} jobs of its queue wait for an hour",
    unit="MiB",
    contestants=(
        Contestant(name=KIT, measure=partial(_growth, module="tests.bench.kit_paced", queue=_QUEUE)),
        Contestant(name="stock", measure=partial(_growth, module="tests.bench.stock_noop", queue="stock")),
    ),
    targets=(Target(at_most=5.0),),
    rounds=2,
)
ROWS: Final = (ACCURACY, MEMORY)
