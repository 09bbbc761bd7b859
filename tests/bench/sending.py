"""What does it cost to send a job that is stored before `send()` returns?

Everybody sends to a durable quorum queue and waits for the broker's confirm. Bodies are the same but for ids.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Final

from tests.bench import celery
from tests.bench.processes import figure, settings
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_MANY: Final = 20_000
_BATCH: Final = 1000
_FEW: Final = 2000
_THREADS: Final = 8
_IDLE: Final = 500
_PAUSE_MS: Final = 5


def _sender(module: str, jobs: int, *options: object) -> Callable[[Services], float]:
    def measure(services: Services) -> float:
        with services.virtual_host() as url, tempfile.TemporaryDirectory() as folder:
            environment = settings(url, f"sqlite:///{folder}/unused.sqlite3")
            return figure(module, "--jobs", services.scaled(jobs), *options, environment=environment)

    return measure


def _kit(jobs: int, *options: object, name: str = KIT) -> Contestant:
    return Contestant(name=name, measure=_sender("tests.bench.kit_sending", jobs, *options))


def _stock(jobs: int, *options: object) -> Contestant:
    return Contestant(name="stock", measure=_sender("tests.bench.stock_sending", jobs, *options))


ENQUEUE_MANY: Final = Row(
    name="enqueue-many",
    what=f"{_MANY:,} jobs by enqueue_many, {_BATCH:,} a call; stock: a loop of send(); pika: ready bodies",
    unit="jobs/s",
    contestants=(
        _kit(_MANY, "--batch", _BATCH),
        _kit(_MANY, "--batch", _BATCH, "--made", name="kit, made before"),
        _stock(_FEW),
        Contestant(name="pika", measure=_sender("tests.bench.pika_sending", _MANY)),
    ),
    targets=(Target(to="stock", at_least=15), Target(to="pika", at_least=0.7)),
)

ONE_THREAD: Final = Row(
    name="send-one-thread",
    what=f"{_FEW:,} send() from one thread",
    unit="jobs/s",
    contestants=(
        _kit(_FEW),
        _stock(_FEW),
        Contestant(name="celery", measure=_sender(celery.SENDER, _FEW), missing=celery.missing),
    ),
    targets=(Target(to="stock", at_least=1.5),),
)

EIGHT_THREADS: Final = Row(
    name="send-eight-threads",
    what=f"{4 * _FEW:,} send() from eight threads; kit: one connection, stock: eight",
    unit="jobs/s",
    contestants=(_kit(4 * _FEW, "--threads", _THREADS), _stock(4 * _FEW, "--threads", _THREADS)),
    targets=(Target(to="stock", at_least=1.3),),
)

IDLE: Final = Row(
    name="send-idle",
    what=f"p99 of {_IDLE} send(), one each {_PAUSE_MS} ms, on a broker that does nothing else",
    unit="ms",
    contestants=(_kit(_IDLE, "--pause", _PAUSE_MS), _stock(_IDLE, "--pause", _PAUSE_MS)),
    targets=(Target(at_most=10),),
)

ROWS: Final = (ENQUEUE_MANY, ONE_THREAD, EIGHT_THREADS, IDLE)
