"""How fast does a worker run no-op jobs? Counted inside the worker, from its first job to its last."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path


def counter() -> Callable[[], None]:
    """Return a no-op actor's body: it writes the rate, in jobs/s, when the last job has run."""
    jobs = int(os.environ["BENCH_JOBS"])
    report = Path(os.environ["BENCH_REPORT"])
    numbers = itertools.count(1)
    started = [0.0]

    def noop() -> None:
        number = next(numbers)
        if number == 1:
            started[0] = time.perf_counter()
        elif number == jobs:
            report.write_text(str((jobs - 1) / (time.perf_counter() - started[0])))

    return noop
