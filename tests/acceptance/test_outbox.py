"""Does a job that was committed run, once, whatever dies between the commit and the broker?"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from dramatiq import Message
from sqlalchemy import text
from sqlalchemy.orm import Session

from jobs.queues import QUEUES
from middleware import Ledger, QuorumBroker, Store, enqueue

from ..control import Control
from ..waiting import stays, wait_until
from .books import RecordUsages, charge
from .deployment import Deployment
from .workers import ROOT

NOBODY = "amqp://jobs:jobs@127.0.0.1:1/%2F"
"""An address where nothing listens."""


def run(deployment: Deployment, number: int, end: str, **settings: str) -> int:
    """Run a process that enqueues the charge of a usage; return its exit code."""
    command = [sys.executable, "-m", "tests.programs.enqueueing", str(number), end]
    return subprocess.run(command, cwd=ROOT, env=deployment.environment(**settings), timeout=60).returncode


@pytest.fixture
def store(deployment: Deployment) -> Iterator[Store]:
    """The deployment's database."""
    store = Store(deployment.database_url)
    yield store
    store.dispose()


def waiting(store: Store) -> int:
    """Return how many rows wait in the outbox."""
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM job_outbox")).scalar_one())


def test_a_process_killed_between_commit_and_publish_loses_nothing(
    deployment: Deployment, record_usages: RecordUsages, store: Store
) -> None:
    """What was committed by processes that were killed before they published runs, once each."""
    books = record_usages(6)
    # The first could not have published, as there is no broker; the others are killed while they may.
    assert run(deployment, 0, "die", JOBS_BROKER_URL=NOBODY) == -signal.SIGKILL
    assert waiting(store) == 1
    for number in range(1, 5):
        assert run(deployment, number, "die") == -signal.SIGKILL
    deployment.start()
    deployment.maintain()
    wait_until(lambda: not waiting(store), what="the outbox to be empty", seconds=40)
    wait_until(lambda: books.count() == 5, what="the charges")
    books.check(range(5))


def test_a_transaction_that_is_rolled_back_sends_nothing(
    deployment: Deployment, record_usages: RecordUsages, store: Store
) -> None:
    """A process that rolls back has sent nothing, then or ever; one that commits has."""
    books = record_usages(3)
    deployment.start()
    deployment.maintain()
    assert run(deployment, 0, "roll-back") == 0
    assert run(deployment, 1, "commit") == 0
    wait_until(lambda: books.count() == 1, what="the committed charge", seconds=40)
    wait_until(lambda: not waiting(store), what="the outbox to be empty")
    deployment.work_off()
    books.check([1])


@pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="Python 3.12.1 starts no thread while it ends, as connecting does"
)
def test_a_process_that_commits_and_ends_has_published(
    deployment: Deployment, record_usages: RecordUsages, store: Store
) -> None:
    """A script whose last act is the commit needs no relay; without a broker it ends all the same."""
    books = record_usages(4)
    deployment.start()
    for number in range(3):
        assert run(deployment, number, "commit") == 0
        assert waiting(store) == 0
    assert run(deployment, 3, "commit", JOBS_BROKER_URL=NOBODY) == 0
    assert waiting(store) == 1
    deployment.maintain()
    wait_until(lambda: not waiting(store), what="the outbox to be empty", seconds=40)
    wait_until(lambda: books.count() == 4, what="the charges")
    books.check(range(4))


def test_what_follows_a_keyed_job_survives_a_crash_before_its_acknowledgement(
    deployment: Deployment, record_usages: RecordUsages, store: Store
) -> None:
    """The worker dies between commit and acknowledgement: the next step runs, and takes effect once."""
    books = record_usages(1)
    job = charge(0)
    following: Message[Any] = Message("critical", "probe_next", ("next",), {}, {})
    job.options["pipe_target"] = following.asdict()
    deployment.send(job)
    worker = deployment.start(settings={"PROBE_DIES_AFTER_COMMIT": "1"})
    assert worker.wait_ended() != 0
    deployment.maintain()
    deployment.start()
    wait_until(lambda: deployment.seen.count("ended", "next"), what="the next step", seconds=40)
    wait_until(lambda: not waiting(store) and not deployment.open(), what="everything to end")
    books.check([0])
    assert deployment.dead_letters() == []


class Clients:
    """Four threads that enqueue charges, each in a transaction, one after the other.

    Parameters:
        store: the database.
        broker: publishes.
        usages: how many to charge.
    """

    def __init__(self, store: Store, broker: QuorumBroker, usages: int) -> None:
        self._store = store
        self._broker = broker
        self._numbers = iter(range(usages))
        self._lock = threading.Lock()
        self.committed = 0
        self._threads = [threading.Thread(target=self._run) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            with Session(self._store.engine) as session, session.begin():
                enqueue(session, charge(number), broker=self._broker)
            with self._lock:
                self.committed += 1

    def join(self) -> None:
        """Wait until all have been enqueued."""
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()


@pytest.mark.owned_services
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("usages", "seconds"), [(1500, 3), pytest.param(10_000, 20, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_all_that_is_enqueued_arrives_though_the_broker_stops_in_the_middle(
    deployment: Deployment,
    record_usages: RecordUsages,
    store: Store,
    control: Control,
    usages: int,
    seconds: int,
) -> None:
    """Commits go on while the broker is stopped; afterwards each charge takes place, once."""
    books = record_usages(usages)
    worker = deployment.start().wait_ready()
    deployment.maintain()
    broker = QuorumBroker(deployment.rabbit.url, queues=QUEUES, middleware=[Ledger(store)])
    clients = Clients(store, broker, usages)
    wait_until(lambda: clients.committed > usages // 3, what="a third to be enqueued", seconds=60)
    control.run("kill", "rabbitmq")
    clients.join()
    assert clients.committed == usages
    assert waiting(store) > 0
    stays(lambda: worker.exit_code is None, what="the worker to go on", seconds=seconds)
    control.run("start", "rabbitmq")
    wait_until(lambda: not waiting(store), what="the outbox to be empty", seconds=120)
    wait_until(lambda: books.count() == usages, what="every charge", seconds=120)
    books.check(range(usages))
    broker.close()
