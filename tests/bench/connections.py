"""How many connections does one worker process hold that consumes several queues and sends as well?"""

from __future__ import annotations

import threading
from typing import Final
from urllib.parse import urlsplit

from tests.bench import queues, workers
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_NAMES: Final = ("critical", "llm", "indexing")
_STEADY_SECONDS: Final = 8
"""Longer than RabbitMQ's management takes to show what has changed: 5 s."""
_pause: Final = threading.Event()


def _kit(services: Services) -> float:
    with (
        workers.sqlite_place(services) as place,
        workers.running(place, "tests.bench.kit_relay", _NAMES) as worker,
    ):
        worker.wait_for_consumers(_NAMES)
        queues.publish(place.url, _NAMES[0], queues.bodies(_NAMES[0], "bench_relay", 1))
        worker.wait_for(lambda: place.report.exists() or None, "a job that a job sent to end")
        return _steady(services, urlsplit(place.url).path[1:])


def _steady(services: Services, virtual_host: str) -> float:
    """Return how many connections a virtual host has, once their number has not changed for a while."""
    seen, since = 0, 0
    while since < _STEADY_SECONDS or not seen:
        now = len(services.manage("GET", f"vhosts/{virtual_host}/connections").json())
        seen, since = (seen, since + 1) if now == seen else (now, 0)
        _pause.wait(1.0)
    return seen


ROW: Final = Row(
    name="connections",
    what=f"connections of one worker process, which consumes {len(_NAMES)} queues and sends as well",
    unit="connections",
    contestants=(Contestant(name=KIT, measure=_kit),),
    targets=(Target(at_most=1.0 + len(_NAMES)),),
    rounds=1,
)
