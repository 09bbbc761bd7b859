"""What does it cost to know what every job came to?

Measured is the middleware `Failures`, which classifies errors and logs them, on jobs that succeed. It is all
that observes jobs in the shipped list.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.bench import workers
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_JOBS: Final = 60_000
_QUEUE: Final = "critical"
_BARE: Final = "bare"


def _rate(services: Services, *, module: str) -> float:
    return workers.noop_rate(services, module, _QUEUE, services.scaled(_JOBS))


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
