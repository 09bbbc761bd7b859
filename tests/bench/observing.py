"""What does it cost to know what every job came to?

Measured is the middleware `Failures`, which classifies errors and logs them, on jobs that succeed. It is all
that observes jobs in the shipped list.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.bench import queues, workers
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services
from tests.bench.working import ACTOR

_JOBS: Final = 60_000
_QUEUE: Final = "critical"
_BARE: Final = "bare"


def _rate(services: Services, *, module: str) -> float:
    bodies = list(queues.bodies(_QUEUE, ACTOR, services.scaled(_JOBS)))
    with workers.sqlite_place(services) as place:
        return workers.pace(place, module, _QUEUE, bodies).jobs_per_second


ROW: Final = Row(
    name="observing-cost",
    what=f"{_JOBS:,} no-op jobs with the shipped middleware list, and with one that only knows success",
    unit="jobs/s",
    contestants=(
        Contestant(name=KIT, measure=partial(_rate, module="tests.bench.kit_paced")),
        Contestant(name=_BARE, measure=partial(_rate, module="tests.bench.kit_bare")),
    ),
    targets=(Target(to=_BARE, at_least=0.90),),
)
