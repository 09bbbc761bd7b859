"""What does the ledger cost a job that writes in a transaction anyway?"""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.bench import workers
from tests.bench.charge_jobs import QUEUE, charges, seed
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_JOBS: Final = 20_000
_WITHOUT: Final = "without ledger"


def _rate(services: Services, *, actor: str) -> float:
    number = services.scaled(_JOBS)
    with workers.postgresql_place(services) as place:
        seed(place, number)
        return workers.pace(place, "tests.bench.kit_ledger", QUEUE, charges(number, actor)).jobs_per_second


ROW: Final = Row(
    name="ledger-cost",
    what=f"{_JOBS:,} jobs that write in one transaction, with an idempotency key and without",
    unit="jobs/s",
    contestants=(
        Contestant(name=KIT, measure=partial(_rate, actor="with_ledger")),
        Contestant(name=_WITHOUT, measure=partial(_rate, actor="without_ledger")),
    ),
    targets=(Target(to=_WITHOUT, at_least=0.90),),
)
