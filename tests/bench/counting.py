"""How fast does a worker run no-op jobs? Counted inside the worker, warm, up to its last job."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

WARM_UP_SHARE: Final = 20
"""One job in so many runs before the clock does."""


def counter() -> Callable[[], None]:
    """Return a no-op actor's body: it writes the rate, in jobs/s, when the last job has run."""
    jobs = int(os.environ["BENCH_JOBS"])
    report = Path(os.environ["BENCH_REPORT"])
    warm_up = max(1, jobs // WARM_UP_SHARE)
    numbers = itertools.count(1)
    started = [0.0]

    def noop() -> None:
        number = next(numbers)
        if number == warm_up:
            started[0] = time.perf_counter()
        elif number == jobs:
            _write(report, (jobs - warm_up) / (time.perf_counter() - started[0]))

    return noop


def variables(jobs: int, report: Path) -> Mapping[str, str]:
    """Return what `counter` reads: how many jobs there are, and where the rate goes."""
    return {"BENCH_JOBS": str(jobs), "BENCH_REPORT": str(report)}


def rate_in(report: Path) -> float | None:
    """Return the rate, None as long as jobs are left."""
    return float(report.read_text()) if report.exists() else None


def _write(report: Path, rate: float) -> None:
    """Write it at once: who reads meanwhile finds no file, or the whole one."""
    half = report.with_suffix(".half")
    half.write_text(str(rate))
    half.rename(report)
