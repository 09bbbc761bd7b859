"""How fast does a worker run its jobs, and for how much processor time? Counted inside it, once warm."""

from __future__ import annotations

import functools
import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from dramatiq import Actor

from tests.bench.handover import hand_over, handed_over

ACTOR: Final = "bench_noop"
"""The name of an actor with the body of `pacer`."""
WARM_UP_SHARE: Final = 20
"""One job in so many runs before the clock does."""


@dataclass(frozen=True)
class Pace:
    """What a worker measured.

    Attributes:
        jobs_per_second: of the whole process.
        user_us: microseconds of processor time a job, of all threads, outside the kernel.
        system_us: the same within the kernel: sockets, files, waking threads.
    """

    jobs_per_second: float
    user_us: float
    system_us: float

    @classmethod
    def reported(cls, report: Path) -> Pace | None:
        """Read a worker's report; None as long as jobs are left."""
        text = handed_over(report)
        return None if text is None else cls(**json.loads(text))


def pacer() -> Callable[[], None]:
    """Return what has to be called at the end of each job, by any thread.

    The call of the last job, of which the worker is told by BENCH_JOBS, writes the report that BENCH_REPORT
    names. When the clock starts, a file `warm` appears beside it.
    """
    jobs = int(os.environ["BENCH_JOBS"])
    report = Path(os.environ["BENCH_REPORT"])
    warm_up = max(1, jobs // WARM_UP_SHARE)
    numbers = itertools.count(1)
    started = [_clocks()]

    def ended() -> None:
        number = next(numbers)
        if number == warm_up:
            started[0] = _clocks()
            report.with_name("warm").touch()
        elif number == jobs:
            spent = [now - then for now, then in zip(_clocks(), started[0], strict=True)]
            hand_over(report, json.dumps(asdict(_pace(jobs - warm_up, *spent))))

    return ended


def paced(*actors: Actor[..., Any]) -> None:
    """Count the jobs of actors, around everything that the middleware has put around their functions."""
    ended = pacer()
    for actor in actors:
        actor.fn = _followed(actor.fn, ended)


def _followed(function: Callable[..., Any], ended: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        ended()
        return result

    return run


def _clocks() -> tuple[float, float, float]:
    processor = os.times()
    return time.perf_counter(), processor.user, processor.system


def _pace(jobs: int, seconds: float, user: float, system: float) -> Pace:
    return Pace(jobs / seconds, user / jobs * 1e6, system / jobs * 1e6)
