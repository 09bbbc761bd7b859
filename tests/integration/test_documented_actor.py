"""Does the async actor that the library's README shows work as it stands there?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from sqlalchemy import text

from middleware import InlineBroker, Queue, Store
from middleware.transport.outcome import COMPLETED, DUPLICATE
from middleware.transport.wrapping import function_of

from .keyed_jobs import KeyedJobs, rows

README = Path(__file__).resolve().parent.parent.parent / "middleware" / "README.md"


@pytest.fixture
def global_broker(monkeypatch: pytest.MonkeyPatch) -> InlineBroker:
    """The broker that documentation's actors bind to."""
    broker = InlineBroker(queues=[Queue(name="critical")], middleware=[])
    broker.actor_options.add("idempotency_key")
    monkeypatch.setattr(dramatiq.broker, "global_broker", broker)
    return broker


def documented(call: str) -> dict[str, Any]:
    """Execute the block of README that calls a function, and return the names that it leaves."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if call in block]
    names: dict[str, Any] = {"__name__": "documented"}
    exec(block, names)
    return names


def test_the_async_actor_takes_effect_once(store: Store, global_broker: InlineBroker) -> None:
    """Delivered twice, it refunds once, on either database."""
    shown = documented("= current_async_session()")["refund"]
    with store.engine.begin() as connection:
        connection.execute(text("INSERT INTO accounts (id, balance) VALUES ('a', 5)"))
    jobs = KeyedJobs(store, "async def")
    refund = jobs.declare(function_of(shown), "refund", idempotency_key=shown.options["idempotency_key"])
    assert jobs.run(refund, "r1", "a", 3).outcome is COMPLETED
    assert jobs.run(refund, "r1", "a", 3).outcome is DUPLICATE
    jobs.close()
    global_broker.close()
    assert rows(store.engine, "SELECT balance FROM accounts") == [8]
