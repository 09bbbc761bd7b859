"""The crash-point kit works on RabbitMQ as it does in memory: a worker is started in the test's process."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq import Actor
from sqlalchemy import text

from middleware import Ledger, QuorumBroker, current_async_session, current_session
from middleware.store import Store

from ..brokers import QUEUE, SHORTER_LADDER, build_middleware
from ..fixtures_broker import MakeBroker
from .crash_jobs import SQLITE, check, refusal

pytestmark = pytest.mark.slow  # each runs an actor dozens of times

ENTER = text("INSERT INTO credit_entries (reference, account_id, amount) VALUES (:one, 'a', 1)")


def declare(make_broker: MakeBroker, store: Store, function: Any, **options: Any) -> Actor[..., Any]:
    """Declare an actor on a broker with a ledger."""
    middleware = build_middleware()
    middleware.insert(3, Ledger(store, wait=timedelta(milliseconds=200)))
    broker = make_broker(middleware=middleware, max_delay=SHORTER_LADDER)
    actor: Actor[..., Any] = dramatiq.actor(broker=broker, queue_name=QUEUE, actor_name="act", **options)(
        function
    )
    return actor


def act(one: str) -> None:
    """Write an entry."""
    current_session().execute(ENTER, {"one": one})


async def act_async(one: str) -> None:
    """Do the same."""
    await current_async_session().execute(ENTER, {"one": one})


@pytest.mark.parametrize("function", [act, act_async])
def test_an_actor_with_a_key(make_broker: MakeBroker, postgresql: Store, function: Any) -> None:
    """Crashes, frozen workers and retries, with a broker that really delivers again."""
    actor = declare(make_broker, postgresql, function, idempotency_key="enter:{one}")
    tried = check(actor)
    assert "a crash after COMMIT, before the acknowledgement" in tried
    assert "a failed attempt and a crash before the confirm of its retry" in tried
    assert isinstance(actor.broker, QuorumBroker)
    assert actor.broker.queue_counts(QUEUE).failed == 0


@SQLITE
def test_an_actor_without_one(make_broker: MakeBroker, store: Store) -> None:
    """The same actor in a transaction of its own is found."""

    def careless(one: str) -> None:
        with store.writing() as connection:
            entries = connection.scalar(text("SELECT count(*) FROM credit_entries"))
            connection.execute(ENTER, {"one": f"{one}{entries}"})

    report = refusal(declare(make_broker, store, careless))
    assert "after a crash after COMMIT, before the acknowledgement: effect took place 2 times" in report
