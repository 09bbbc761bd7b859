"""How does a test deliver jobs that are as old as they say, to actors of every kind of effect?"""

from __future__ import annotations

import dataclasses
import threading
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from dramatiq import Actor, Message
from sqlalchemy import text

from middleware import Unprovable
from middleware.effects.pruning import Pruner
from middleware.store import Store
from middleware.transport.outcome import Dead

from ..journal import Journal
from .external_jobs import external_actor
from .keyed_jobs import Ended, KeyedJobs, enter
from .late_jobs import late_actor

DAY: Final = timedelta(days=1)
RETENTION: Final = 120 * DAY


@pytest.fixture(params=["database", "late", "external"])
def effect(request: pytest.FixtureRequest) -> str:
    """The kind of the actors' effects; a test that uses this runs once with each."""
    effect: str = request.param
    return effect


def declare(jobs: KeyedJobs, effect: str, journal: Journal | None = None, **options: Any) -> Actor[..., Any]:
    """Declare an actor that notes that it runs, and enters its argument."""
    journal = Journal() if journal is None else journal
    if effect == "late":
        return late_actor(jobs, journal.note, **options)
    if effect == "external":
        return external_actor(jobs, journal.note, write=enter, **options)

    def body(session: Any, one: str, two: str, three: str) -> None:
        journal.note(one)
        enter(session, one)

    return jobs.actor("enter:{one}", **options)(body)


def aged(actor: Actor[..., Any], age: timedelta, *args: Any) -> Message[Any]:
    """Return a job that was first enqueued so long ago."""
    return dataclasses.replace(
        actor.message(*args), message_timestamp=int((datetime.now(UTC) - age).timestamp() * 1000)
    )


def deliver(jobs: KeyedJobs, message: Message[Any]) -> Ended:
    """Deliver a job, however old, and return how that ended."""
    jobs.broker.begin_sending()  # which starts the worker
    before = len(jobs.recorder.of(message))
    return jobs.wait_for(jobs.put(message), before + 1)


def prune(store: Store, keep: timedelta = RETENTION) -> None:
    """Prune without waiting for anybody."""
    assert Pruner(store, keep, timedelta(0), rest=0).run(threading.Event()).is_complete


def age(store: Store, age: timedelta) -> None:
    """Let everything that the ledger holds be so old."""
    moment = (datetime.now(UTC) - age).strftime("%Y-%m-%d %H:%M:%S.%f")
    zone = "" if store.is_sqlite else "+00"
    with store.writing() as connection:
        connection.execute(text(f"UPDATE job_ledger SET created_at = '{moment}{zone}'"))
        connection.execute(text(f"UPDATE job_intents SET began_at = '{moment}{zone}'"))
        connection.execute(
            text(f"UPDATE job_intents SET ended_at = '{moment}{zone}' WHERE ended_at IS NOT NULL")
        )


def assert_unprovable(ended: Ended) -> str:
    """Check that a delivery ended as a dead letter of its kind; returns the reason."""
    assert isinstance(ended.outcome, Dead)
    assert ended.outcome.kind == "unprovable"
    assert isinstance(ended.error, Unprovable)
    return str(ended.error)
