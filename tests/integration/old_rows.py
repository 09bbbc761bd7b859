"""How does a test fill the ledger with old rows, and look at what pruning leaves?"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from middleware.effects import pieces
from middleware.effects.pruning import Pruned, Pruner
from middleware.store import Store, job_intents, job_ledger, job_watermark

DAY: Final = timedelta(days=1)
KEEP: Final = 120 * DAY
HOUR: Final = timedelta(hours=1)


def spend(store: Store, ages: dict[str, timedelta]) -> None:
    """Write a row of the ledger for each key, as if it had been spent so long ago."""
    now = datetime.now(UTC)
    values = [
        {"key": key, "args_hash": b"0" * 16, "actor": "act", "message_id": key, "created_at": now - age}
        for key, age in ages.items()
    ]
    with store.writing() as connection:
        connection.execute(job_ledger.insert(), values)


def attempt(store: Store, key: str, fence: int, state: str, age: timedelta) -> None:
    """Write an attempt, as if it had been made so long ago."""
    then = datetime.now(UTC) - age
    values = {"key": key, "fence": fence, "state": state, "args_hash": b"0", "actor": "act", "holder": "h"}
    times = {"began_at": then, "lease_until": then, "ended_at": None if state == "held" else then}
    with store.writing() as connection:
        connection.execute(job_intents.insert().values(**values, **times, message_id=key))


def prune(store: Store, keep: timedelta = KEEP, **options: Any) -> Pruned:
    """Prune without waiting for anybody."""
    return Pruner(store, keep, timedelta(0), **{"rest": 0.0, **options}).run(threading.Event())


def mark(store: Store) -> Any:
    """Return the row of the watermark, None if there is none."""
    with store.engine.connect() as connection:
        return connection.execute(job_watermark.select()).one_or_none()


def set_mark(store: Store, age: timedelta, raised: timedelta | None) -> None:
    """Raise the watermark as somebody did so long ago, who was killed after that."""
    now = datetime.now(UTC)
    values = {"id": 1, "watermark": now - age, "raised_at": None if raised is None else now - raised}
    with store.writing() as connection:
        connection.execute(job_watermark.delete())
        connection.execute(job_watermark.insert().values(**values))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some hundred rows be several pieces."""
    monkeypatch.setattr(pieces, "_BLOCKS", 2)
    monkeypatch.setattr(pieces, "_ROWS", 50)
