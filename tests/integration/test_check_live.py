"""Does `jobsctl check --live` see what is wrong with the services, and leave them as they are?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from middleware import QuorumBroker, Store
from middleware.checks import Finding
from middleware.checks.live_broker import check_broker
from middleware.checks.live_database import check_database
from middleware.store import migrate
from middleware.transport.declare import declare
from middleware.transport.topology import dead_letter_queue
from middleware.transport.wire import Wire
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.fixtures_database import new_database
from tests.rabbit import Rabbit

THREADS = 8


@pytest.fixture
def broker(make_broker: MakeBroker, rabbit: Rabbit) -> QuorumBroker:
    """A broker that knows the HTTP API; nothing is declared yet."""
    return make_broker(management_url=rabbit.management_url)


def declare_all(broker: QuorumBroker) -> None:
    """Declare what a worker would."""
    wire = Wire(broker.parameters, "test")
    for topology in broker.topologies.values():
        declare(wire, topology)
    wire.close()


def only(findings: list[Finding]) -> Finding:
    """Return the one finding there is."""
    assert len(findings) == 1, findings
    return findings[0]


def test_a_broker_as_declared_has_no_finding(broker: QuorumBroker) -> None:
    """Queues, exchanges, bindings and policies are what the kit declares."""
    declare_all(broker)
    assert list(check_broker(broker)) == []


def test_what_is_missing_is_told_and_not_made(broker: QuorumBroker, rabbit: Rabbit) -> None:
    """Nothing comes into being by being asked for."""
    found = only(list(check_broker(broker)))
    assert found.code == "JOB302"
    assert "got: no exchange 'jobs.dlx'" in found.why
    assert rabbit.queue_names() == set()
    declare_all(broker)
    rabbit.delete_queue(f"{QUEUE}.delay.03")
    found = only(list(check_broker(broker)))
    assert (found.code, f"no queue '{QUEUE}.delay.03'" in found.why) == ("JOB302", True)
    assert f"{QUEUE}.delay.03" not in rabbit.queue_names()


@pytest.mark.parametrize("name", [QUEUE, f"{QUEUE}.XQ", f"{QUEUE}.delay.00"])
def test_other_arguments_are_told(broker: QuorumBroker, rabbit: Rabbit, name: str) -> None:
    """A queue with another argument is named with both values."""
    declare_all(broker)
    arguments = {queue.name: queue.arguments for queue in broker.topologies[QUEUE].queues}[name]
    rabbit.delete_queue(name)
    with rabbit.channel() as channel:
        channel.queue_declare(name, durable=True, arguments={**arguments, "x-delivery-limit": 33})
    found = [each for each in check_broker(broker) if each.code != "JOB304"]
    assert only(found).code == "JOB302"
    assert f"queue {name!r}: expected x-delivery-limit" in found[0].why
    assert "got: 33" in found[0].why


def test_an_exchange_of_another_kind(broker: QuorumBroker, rabbit: Rabbit) -> None:
    """Exchanges are compared as well."""
    with rabbit.channel() as channel:
        channel.exchange_declare("jobs.dlx", "fanout", durable=True)
    assert any("exchange 'jobs.dlx': expected type" in each.why for each in check_broker(broker))


def test_a_policy_that_drops_jobs(broker: QuorumBroker, rabbit: Rabbit) -> None:
    """Policies are matched against what is declared."""
    declare_all(broker)
    rabbit.set_policy(f"^{QUEUE}$", message_ttl=1000)
    found = only(list(check_broker(broker)))
    assert (found.code, "message-ttl" in found.why) == ("JOB303", True)


def test_dead_letters_without_a_way(broker: QuorumBroker, rabbit: Rabbit) -> None:
    """The binding from jobs.dlx to the dead-letter queue is asked for."""
    declare_all(broker)
    with rabbit.channel() as channel:
        channel.queue_unbind(dead_letter_queue(QUEUE), "jobs.dlx", QUEUE)
    assert only(list(check_broker(broker))).code == "JOB304"


def test_a_user_without_rights(broker: QuorumBroker, rabbit: Rabbit) -> None:
    """What the broker refuses is told in its words."""
    declare_all(broker)
    rabbit.restrict(configure="^$")
    found = list(check_broker(broker))
    assert {each.code for each in found} == {"JOB302"}
    assert "access to exchange 'jobs.dlx'" in found[0].why


@pytest.mark.parametrize("url", ["amqp://127.0.0.1:1/", "wrong vhost"])
def test_a_broker_that_is_not_reached(make_broker: MakeBroker, rabbit: Rabbit, url: str) -> None:
    """One finding, not a traceback."""
    url = f"{rabbit.url}-none" if url == "wrong vhost" else url
    assert only(list(check_broker(make_broker(url=url)))).code == "JOB301"


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:1"])
def test_without_the_api_there_is_a_hint(make_broker: MakeBroker, rabbit: Rabbit, url: str | None) -> None:
    """What could not be asked is said."""
    broker = make_broker(management_url=url)
    declare_all(broker)
    assert only(list(check_broker(broker))).code == "JOB307"


def test_a_migrated_database(store: Store) -> None:
    """On PostgreSQL and SQLite: nothing to say."""
    assert list(check_database(store, "jobs", THREADS)) == []


def test_a_database_of_a_version_before(store: Store) -> None:
    """A branch that is behind is named with where it is."""
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM job_application_version"))
    found = only(list(check_database(store, "jobs", THREADS)))
    assert "branch 'application'" in found.why
    assert "got: none" in found.why
    assert list(check_database(store, None, THREADS)) == []


def test_a_pool_that_is_smaller_than_the_threads(store: Store) -> None:
    """What workers refuse, the check says before."""
    found = only(list(check_database(store, "jobs", 64)))
    assert (found.code, "JOBS_DATABASE_POOL_SIZE" in found.why) == ("JOB305", True)


def test_an_sqlite_file_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    """Being asked for does not make it."""
    file = tmp_path / "none.sqlite3"
    assert only(list(check_database(Store(f"sqlite:///{file}"), "jobs", THREADS))).code == "JOB305"
    assert not file.exists()


def test_a_postgresql_without_tables_or_durability() -> None:
    """Missing tables and switched-off durability are told as workers tell them."""
    with new_database() as url:
        store = Store(url)
        assert "job_ledger" in only(list(check_database(store, "jobs", THREADS))).why
        migrate(url)
        name: Any = store.url.database
        with store.engine.begin() as connection:
            connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
        store.dispose()
        assert "synchronous_commit" in only(list(check_database(store, "jobs", THREADS))).why
        store.dispose()


def test_a_server_that_is_away() -> None:
    """One finding, with the address and without the password."""
    store = Store("postgresql+psycopg://jobs:secret@127.0.0.1:1/jobs")
    found = only(list(check_database(store, "jobs", THREADS)))
    assert found.code == "JOB305"
    assert "secret" not in found.why
