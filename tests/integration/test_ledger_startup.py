"""A worker with keyed actors does not start on a database that would break the ledger's promises."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import dramatiq
import psycopg
import pytest
from dramatiq import Worker
from sqlalchemy import make_url, text

from middleware import ConfigurationError, Failures, InlineBroker, NotEnqueued, Queue, TimeLimits
from middleware.effects import Ledger
from middleware.store import Store, migrate_down
from middleware.transport.liveness import EXIT_CONFIGURATION, EXIT_CONNECTION


class Starting:
    """A broker with a keyed actor on the queue `keyed`, and a plain one on `plain`."""

    def __init__(self, store: Store, **options: Any) -> None:
        self.ledger = Ledger(store, **options)
        self.broker = InlineBroker(
            queues=[Queue(name="keyed"), Queue(name="plain")],
            middleware=[TimeLimits(), self.ledger, Failures()],
            threads=4,
        )

        @dramatiq.actor(broker=self.broker, queue_name="keyed", idempotency_key="k:{one}")
        def keyed(one: str) -> None: ...

        @dramatiq.actor(broker=self.broker, queue_name="keyed", idempotency_key="c:{one}", effect="external")
        def calling(one: str) -> None: ...

        @dramatiq.actor(broker=self.broker, queue_name="plain")
        def plain() -> None: ...

    def start(self, *, threads: int = 4, queues: set[str] | None = None) -> None:
        """Do what a worker does first; the ledger alone decides."""
        for name in ("keyed", "plain"):
            self.broker.declare_queue(name)
        worker = Worker(self.broker, queues=queues, worker_threads=threads)
        self.ledger.before_worker_boot(self.broker, worker)


def refusal(
    store: Store, caplog: pytest.LogCaptureFixture, code: int = EXIT_CONFIGURATION, **options: Any
) -> str:
    """Return the one CRITICAL line of a start that is refused."""
    with pytest.raises(SystemExit) as caught, caplog.at_level(logging.CRITICAL):
        Starting(store).start(**options)
    assert caught.value.code == code
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert line.startswith("Refusing to start: expected ")
    assert "\n" not in line
    return line


@contextmanager
def altered(store: Store, setting: str) -> Iterator[None]:
    """Set something for every new connection to the store's database."""
    store.dispose()
    with psycopg.connect(
        store.url.set(drivername="postgresql").render_as_string(False), autocommit=True
    ) as connection:
        connection.execute(f"ALTER DATABASE {store.url.database} SET {setting}".encode())
    yield


def test_a_sound_database_is_accepted(store: Store) -> None:
    """With tables, a large enough pool and default settings, the worker starts."""
    Starting(store).start()


def test_missing_tables_are_refused(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Without the ledger's table, the start is refused with the command to run."""
    migrate_down(store.url.render_as_string(False))
    line = refusal(store, caplog)
    assert "job_ledger" in line
    assert line.endswith("run `jobsctl migrate`")


@pytest.mark.parametrize("table", ["job_intents", "job_outbox"])
def test_tables_of_the_version_before_are_refused(
    store: Store, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    """A database that has the ledger and not all other tables is refused with the command to run."""
    with store.engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {table}"))
    line = refusal(store, caplog)
    assert table in line
    assert line.endswith("run `jobsctl migrate`")


def test_a_lease_longer_than_any_run_is_warned_of(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A job whose worker died would wait for longer than it can have been running."""
    Starting(store, lease=timedelta(minutes=2, seconds=25)).start()
    assert "lease" not in caplog.text
    Starting(store, lease=timedelta(minutes=2, seconds=26)).start()
    assert "actor 'calling': expected the lease (JOBS_EFFECT_LEASE) to be at most" in caplog.text
    with pytest.raises(ValueError, match="expected lease to be at least 1 s"):
        Starting(store, lease=timedelta(milliseconds=999))


def test_a_table_of_another_version_is_refused(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A ledger table without a column that this version needs counts as missing."""
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE job_ledger DROP COLUMN args_hash"))
    assert refusal(store, caplog).endswith("run `jobsctl migrate`")


def test_a_pool_smaller_than_the_threads_is_refused(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each thread needs a connection of its own."""
    store = Store(database_url, pool_size=3)
    line = refusal(store, caplog)
    assert "expected JOBS_DATABASE_POOL_SIZE to be at least the worker's threads (4), got: 3" in line
    Starting(store).start(threads=3)
    store.dispose()


def test_queues_without_keyed_actors_need_no_database(tmp_path: Path) -> None:
    """A worker that consumes only queues without keyed actors starts without looking at the database."""
    store = Store(f"sqlite:///{tmp_path}/absent/none.sqlite3")
    Starting(store).start(queues={"plain"})


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_another_isolation_is_refused(
    postgresql: Store, caplog: pytest.LogCaptureFixture, level: str
) -> None:
    """Under a stricter isolation a job that waited for its twin would fail instead of being a duplicate."""
    with altered(postgresql, f"default_transaction_isolation = '{level}'"):
        assert f"READ COMMITTED, got: {level.upper()};" in refusal(postgresql, caplog)


def test_asynchronous_commits_are_refused(postgresql: Store, caplog: pytest.LogCaptureFixture) -> None:
    """With synchronous_commit=off a crash of the database would undo effects whose jobs are gone."""
    with altered(postgresql, "synchronous_commit = off"):
        assert "expected synchronous_commit to be on, got: off" in refusal(postgresql, caplog)


def test_a_database_that_does_not_answer_is_refused(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The line names the address, without the password."""
    store = Store("postgresql+psycopg://user:secret@127.0.0.1:1/jobs")
    line = refusal(store, caplog, EXIT_CONNECTION)
    assert "postgresql+psycopg://user:***@127.0.0.1:1/jobs to answer, got: " in line
    caplog.clear()
    assert "absent" in refusal(Store(f"sqlite:///{tmp_path}/absent/none.sqlite3"), caplog, EXIT_CONNECTION)


def test_an_inline_broker_tells_the_sender(sqlite: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Where the worker runs in the sender's process, the first send raises NotEnqueued."""
    migrate_down(sqlite.url.render_as_string(False))
    starting = Starting(sqlite)
    with pytest.raises(NotEnqueued, match="refuses to start"):
        starting.broker.actors["keyed"].send("1")
    assert "jobsctl migrate" in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "mysql://localhost/jobs",
        "postgresql+asyncpg://h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://h",
        "nonsense",
    ],
)
def test_other_databases_are_refused(url: str) -> None:
    """A store is PostgreSQL through psycopg or an SQLite file."""
    with pytest.raises(
        ConfigurationError, match=r"expected the database URL to be postgresql\+psycopg://.*, got: "
    ):
        Store(url)


def test_a_password_is_not_shown() -> None:
    """A refused URL is shown without its password."""
    with pytest.raises(ConfigurationError) as caught:
        Store("mysql://user:secret@localhost/jobs")
    assert "secret" not in str(caught.value)


def test_the_usual_postgresql_url_means_psycopg() -> None:
    """`postgresql://` is what most hosts hand out."""
    assert Store("postgresql://h/d").url == make_url("postgresql+psycopg://h/d")
