"""Credit charges per second of one worker process: how far is the shipped job from its bare statements?"""

from __future__ import annotations

from typing import Final

from tests.bench import pgbench, workers
from tests.bench.charge_jobs import QUEUE, charges, seed
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_JOBS: Final = 20_000


def _kit(services: Services) -> float:
    number = services.scaled(_JOBS)
    with workers.postgresql_place(services) as place:
        seed(place, number)
        return workers.pace(place, "tests.bench.kit_charge", QUEUE, charges(number)).jobs_per_second


def _prepared(services: Services) -> float:
    return _pgbench(services, pgbench.PREPARED)


def _as_sent(services: Services) -> float:
    return _pgbench(services, pgbench.AS_SENT)


def _pgbench(services: Services, script: tuple[str, str]) -> float:
    number = services.scaled(_JOBS)
    with workers.postgresql_place(services) as place:
        seed(place, number)
        return pgbench.rate(place.database_url, number, script)


ROW: Final = Row(
    name="charge-credit",
    what=f"{_JOBS:,} charges as shipped, one worker process, 8 threads; pgbench: their statements, 8 clients",
    unit="jobs/s",
    contestants=(
        Contestant(name=KIT, measure=_kit),
        Contestant(name="pgbench", measure=_prepared, missing=pgbench.missing),
        Contestant(name="pgbench as sent", measure=_as_sent, missing=pgbench.missing),
    ),
    targets=(Target(to="pgbench", at_least=0.40),),
)
