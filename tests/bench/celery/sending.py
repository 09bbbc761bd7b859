"""Send no-op jobs through Celery and print jobs/s: `python -m tests.bench.celery.sending JOBS [WARM_UP]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from tests.bench.celery.app import noop


def main(arguments: Sequence[str]) -> None:
    """Send from one thread; each call returns when the broker has confirmed."""
    jobs, warm_up = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    for _ in range(warm_up):
        noop.apply_async()
    started = time.perf_counter()
    for _ in range(jobs):
        noop.apply_async()
    print(jobs / (time.perf_counter() - started))


if __name__ == "__main__":
    main(sys.argv[1:])
