"""No-op jobs per second of one worker process with 8 threads: what does everything around a job cost?"""

from __future__ import annotations

from typing import Final

from tests.bench import bullmq, celery, workers
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_JOBS: Final = 20_000


def _kit(services: Services) -> float:
    return workers.noop_rate(services, "tests.bench.kit_paced", "critical", services.scaled(_JOBS))


def _stock(services: Services) -> float:
    return workers.noop_rate(services, "tests.bench.stock_noop", "stock", services.scaled(_JOBS))


def _celery(services: Services) -> float:
    return celery.rate(services, services.scaled(_JOBS))


def _bullmq(services: Services) -> float:
    return bullmq.rate(services.scaled(_JOBS), fsync="always")


def _bullmq_everysec(services: Services) -> float:
    return bullmq.rate(services.scaled(_JOBS), fsync="everysec")


ROW: Final = Row(
    name="noop",
    what=f"{_JOBS:,} no-op jobs that wait, one worker process, 8 threads, quorum queue, all middleware on",
    unit="jobs/s",
    contestants=(
        Contestant(name=KIT, measure=_kit),
        Contestant(name="stock", measure=_stock),
        Contestant(name="bullmq", measure=_bullmq, missing=bullmq.missing),
        Contestant(name="bullmq everysec", measure=_bullmq_everysec, missing=bullmq.missing),
        Contestant(name="celery", measure=_celery, missing=celery.missing),
    ),
    targets=(Target(to="stock", at_least=2.5), Target(to="bullmq", at_least=1.0)),
)
