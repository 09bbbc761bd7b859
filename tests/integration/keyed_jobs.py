"""How does a test run keyed actors, once as `def` and once as `async def`, and see how each delivery ended?

A test writes an actor's body once, as a function of the session; `KeyedJobs` declares it as either kind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

import dramatiq
import pytest
from dramatiq import Actor, Broker, Message
from dramatiq.middleware import AsyncIO, CurrentMessage, Middleware
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from middleware import Failures, InlineBroker, Queue, TimeLimits
from middleware.effects import Ledger, current_async_session, current_session
from middleware.store import Store
from middleware.transport.delivery import Delivery
from middleware.transport.outcome import Outcome
from middleware.transport.publication import READY, Publication, Ticket

from ..waiting import wait_until

QUEUE: Final = "jobs"
Body: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Ended:
    """How one delivery ended."""

    message_id: str
    outcome: Outcome
    error: BaseException | None


class Recorder(Middleware):
    """Notes how deliveries end; first in the list, so that its `after` hook comes last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: list[Ended] = []

    def after_process_message(
        self,
        broker: Broker,
        message: Any,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        assert isinstance(message, Delivery)
        assert message.outcome is not None
        with self._lock:
            self._ended.append(Ended(message.message_id, message.outcome, exception))

    def of(self, message: Message[Any]) -> list[Ended]:
        """Return how the deliveries of a message ended so far."""
        with self._lock:
            return [each for each in self._ended if each.message_id == message.message_id]


class Gate:
    """Lets a test hold an actor in the middle of its work."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def pass_through(self) -> None:
        """Called by the actor."""
        self.reached.set()
        assert self.opened.wait(20)

    def wait(self) -> None:
        """Wait until the actor is there."""
        assert self.reached.wait(20)


class KeyedJobs:
    """An inline broker with a ledger, and actors of one kind.

    Parameters:
        store: the database.
        kind: `def` or `async def`.
        threads: worker threads. Defaults to 4.
        time_limits: whether jobs are interrupted at their time limit. Defaults to True.
        more: middleware that stands after the ledger.
        ledger: parameters of `Ledger`.
    """

    def __init__(
        self,
        store: Store,
        kind: str,
        *,
        threads: int = 4,
        time_limits: bool = True,
        more: Sequence[Middleware] = (),
        **ledger: Any,
    ) -> None:
        self.store = store
        self.kind = kind
        self.recorder = Recorder()
        self.ledger = Ledger(store, **{"wait": timedelta(seconds=5), **ledger})
        self.broker = InlineBroker(
            queues=[Queue(name=QUEUE, time_limit=timedelta(seconds=60))],
            middleware=[
                self.recorder,
                CurrentMessage(),
                *([TimeLimits()] if time_limits else []),
                self.ledger,
                *more,
                AsyncIO(),
                Failures(max_retries=0),
            ],
            threads=threads,
            grace=timedelta(seconds=5),
        )

    def actor(self, key: str, *, name: str = "act", **options: Any) -> Callable[[Body], Actor[..., Any]]:
        """Declare an actor with the parameters `one`, `two` and `three`.

        Parameters:
            key: its `idempotency_key`.
            name: its name. Defaults to `act`.
            options: of the actor.

        The decorated function takes the session, and as many arguments as the actor is sent.
        """

        def declare(body: Body) -> Actor[..., Any]:
            def act(one: Any, two: Any = "2", three: Any = "3") -> Any:
                return body(current_session(), one, two, three)

            async def act_async(one: Any, two: Any = "2", three: Any = "3") -> Any:
                return await current_async_session().run_sync(body, one, two, three)

            function = act if self.kind == "def" else act_async
            return self.declare(function, name, idempotency_key=key, **options)

        return declare

    def declare(self, function: Callable[..., Any], name: str, **options: Any) -> Actor[..., Any]:
        """Declare a function as an actor."""
        actor: Actor[..., Any] = dramatiq.actor(
            broker=self.broker, queue_name=QUEUE, actor_name=name, **options
        )(function)
        return actor

    def send(self, actor: Actor[..., Any], *args: Any, **kwargs: Any) -> Message[Any]:
        """Send a job."""
        return actor.send(*args, **kwargs)

    def put(self, message: Message[Any]) -> Message[Any]:
        """Store a message as another AMQP client would: unchecked."""
        publication = Publication(QUEUE, READY, message.encode(), message_id=message.message_id)
        self.broker._memory.submit([Ticket(publication, lambda ticket: None)])
        return message

    def wait_for(self, message: Message[Any], deliveries: int = 1) -> Ended:
        """Return how the n-th delivery of a message ended."""
        return wait_until(
            lambda: self.recorder.of(message)[deliveries - 1 :], what=f"delivery {deliveries} of {message}"
        )[0]

    def run(self, actor: Actor[..., Any], *args: Any, **kwargs: Any) -> Ended:
        """Send a job and return how its first delivery ended."""
        return self.wait_for(self.send(actor, *args, **kwargs))

    def close(self) -> None:
        """Stop the worker once every delivery is settled."""
        wait_until(lambda: self.broker.queue_counts(QUEUE).active == 0, what="every delivery to be settled")
        self.broker.close()


def rows(engine: Engine, query: str) -> list[Any]:
    """Return what a query finds, single columns without their tuples."""
    with engine.connect() as connection:
        found = connection.execute(text(query)).all()
    return [row[0] if len(row) == 1 else tuple(row) for row in found]


def keys(store: Store) -> list[str]:
    """Return the keys that are spent."""
    return rows(store.engine, "SELECT key FROM job_ledger ORDER BY key")


def entries(store: Store) -> list[str]:
    """Return the effects that took place."""
    return rows(store.engine, "SELECT reference FROM credit_entries ORDER BY reference")


def enter(session: Session, reference: str) -> None:
    """The effect that the tests' actors have: a row, of which there can be one."""
    session.execute(
        text("INSERT INTO credit_entries (reference, account_id, amount) VALUES (:reference, 'a', 1)"),
        {"reference": reference},
    )


@pytest.fixture(params=["def", "async def"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of the actors; a test that uses this runs once with each."""
    kind: str = request.param
    return kind


@pytest.fixture
def jobs(store: Store, kind: str) -> Iterator[KeyedJobs]:
    """Keyed actors on a database of either kind."""
    jobs = KeyedJobs(store, kind)
    yield jobs
    jobs.close()


@pytest.fixture
def postgresql_jobs(postgresql: Store, kind: str) -> Iterator[KeyedJobs]:
    """Keyed actors on PostgreSQL."""
    jobs = KeyedJobs(postgresql, kind)
    yield jobs
    jobs.close()


@pytest.fixture
def sqlite_jobs(sqlite: Store, kind: str) -> Iterator[KeyedJobs]:
    """Keyed actors on SQLite."""
    jobs = KeyedJobs(sqlite, kind)
    yield jobs
    jobs.close()
