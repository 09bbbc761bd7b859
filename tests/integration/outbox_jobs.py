"""How does a test enqueue in a transaction and see what arrives? A broker with a ledger, and a journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, TypeAlias

import dramatiq
import pytest
from dramatiq import Actor, Message
from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.orm import Session

from middleware import QuorumBroker, enqueue
from middleware.effects import Ledger
from middleware.effects.outbox import Relay
from middleware.store import Store, job_outbox
from middleware.transport.memory import Memory
from middleware.transport.publication import Ticket

from ..brokers import QUEUE, build_middleware, build_quorum_broker, start_worker, stop_worker
from ..journal import Journal
from ..proxy import Proxy
from ..rabbit import Rabbit
from ..waiting import wait_until


class OutboxJobs:
    """A broker whose jobs note their argument, reached through a proxy that a test can hold.

    Parameters:
        store: the database of the outbox.
        url: the broker's.
        ledger: parameters of `Ledger`.
    """

    def __init__(self, store: Store, url: str, **ledger: Any) -> None:
        self.store = store
        self.engine = application_engine(store)
        self.journal = Journal()
        self.ledger = Ledger(store, **ledger)
        middleware = build_middleware()
        middleware.insert(3, self.ledger)
        self.broker: QuorumBroker = build_quorum_broker(url, middleware=middleware)
        self.note = self.declare(self.journal.note, "note")
        self._stack = ExitStack()

    def declare(self, function: Callable[..., Any], name: str, **options: Any) -> Actor[..., Any]:
        """Declare an actor."""
        actor: Actor[..., Any] = dramatiq.actor(
            broker=self.broker, queue_name=QUEUE, actor_name=name, **options
        )(function)
        return actor

    def session(self) -> Session:
        """Return a session on an engine that is not the kit's, as an application has one."""
        return Session(self.engine)

    def enqueue(self, session: Session, *names: Any, delay: timedelta | None = None) -> list[Message[Any]]:
        """Enqueue a job for each name."""
        return [enqueue(session, self.note.message(name), delay=delay, broker=self.broker) for name in names]

    def start(self) -> None:
        """Run jobs."""
        self._stack.callback(stop_worker, start_worker(self.broker))

    def relay(self) -> Relay:
        """Relay, as the maintenance does."""
        relay = Relay(self.store, self.broker)
        relay.start()
        self._stack.callback(relay.stop)
        return relay

    def waiting(self) -> list[Any]:
        """Return the rows of the outbox, oldest first."""
        with self.store.engine.connect() as connection:
            return list(connection.execute(select(job_outbox).order_by(job_outbox.c.id)).all())

    def wait_for_problem(self) -> Any:
        """Wait until a row could not be published, and return it."""
        return wait_until(lambda: [row for row in self.waiting() if row.problem], what="a row's problem")[0]

    def wait_until_empty(self, seconds: float = 20.0) -> None:
        """Wait until every row was confirmed and removed."""
        wait_until(lambda: not self.waiting(), what="the outbox to be empty", seconds=seconds)

    def assert_ran(self, *names: Any) -> None:
        """Wait until these jobs, and no others, ran, each once."""
        self.journal.wait_for(len(names))
        self.wait_until_empty()
        wait_until(lambda: self.broker.queue_counts(QUEUE).waiting == 0, what="the queue to be empty")
        assert sorted(self.journal.entries) == sorted(names)

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()
        self.ledger.outbox.stop()
        self.broker.close()
        self.engine.dispose()


def application_engine(store: Store) -> Engine:
    """Return an engine as an application makes it; on SQLite with real savepoints, see SQLAlchemy's dialect.

    Without that, Python's driver lets a savepoint before the first INSERT be a transaction of its own.
    """
    if not store.is_sqlite:
        return store.engine
    engine = create_engine(store.url)

    @event.listens_for(engine, "connect")
    def leave_alone(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


class Held(Memory):
    """Takes the publisher's place and publishes nothing: a broker that is away."""

    def __init__(self) -> None:
        super().__init__()
        self.tickets: list[Ticket] = []

    def submit(self, tickets: Sequence[Ticket]) -> None:
        self.tickets += tickets


MakeOutboxJobs: TypeAlias = Callable[..., OutboxJobs]


@pytest.fixture
def make_outbox_jobs(rabbit: Rabbit, store: Store, proxy: Proxy) -> Iterator[MakeOutboxJobs]:
    """Build brokers with an outbox; they are closed with the test."""
    with ExitStack() as stack:

        def make(**options: Any) -> OutboxJobs:
            jobs = OutboxJobs(options.pop("store", store), proxy.url, **options)
            stack.callback(jobs.close)
            return jobs

        yield make


@pytest.fixture
def outbox_jobs(make_outbox_jobs: MakeOutboxJobs) -> OutboxJobs:
    """A broker with an outbox in a database of either kind."""
    return make_outbox_jobs()


def statements(engine: Engine) -> list[str]:
    """Return the list that every statement of an engine is added to from now on."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    return seen


def names(rows: Sequence[Any]) -> list[str]:
    """Return the message ids of rows."""
    return [row.message_id for row in rows]
