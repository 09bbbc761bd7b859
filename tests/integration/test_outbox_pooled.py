"""Does the outbox work through PgBouncer in transaction mode, where statements share no connection's state?

Without a PgBouncer the same is asked of connections that forget everything after each of the kit's own
statements.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import event, make_url
from sqlalchemy.orm import Session

from middleware import current_session
from middleware.effects.presence import last_seen, say_present
from middleware.store import Store

from .keyed_jobs import enter, entries
from .outbox_jobs import MakeOutboxJobs
from .test_relay import leave

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
_POOLER = "JOBS_TEST_PGBOUNCER"


@pytest.fixture(params=["forgetful", "pgbouncer"])
def pooled(request: pytest.FixtureRequest, database_url: str) -> Iterator[Store]:
    """A database behind a pooler, or on connections that forget what was said before."""
    url = make_url(database_url)
    if request.param == "pgbouncer":
        address = os.environ.get(_POOLER)
        if not address:
            pytest.skip(f"needs a PgBouncer in front of the tests' PostgreSQL, and {_POOLER}=host:port")
        host, _, port = address.partition(":")
        url = url.set(host=host, port=int(port)).update_query_dict({"prepare_threshold": "none"})
    store = Store(url.render_as_string(hide_password=False))
    if request.param == "forgetful":
        event.listen(store._stateless_engine(), "after_cursor_execute", _forget)
    yield store
    store.dispose()


def _forget(connection: Any, _cursor: Any, *_: Any) -> None:
    # Below psycopg, which would otherwise know that its prepared statements are gone.
    connection.connection.driver_connection.pgconn.exec_(b"DISCARD ALL")


def test_jobs_are_enqueued_published_and_relayed_through_a_pooler(
    pooled: Store, make_outbox_jobs: MakeOutboxJobs
) -> None:
    """400 transactions of eight threads, jobs with ids, leftovers and a keyed actor's sends arrive once."""
    jobs = make_outbox_jobs(store=pooled)

    def act(name: str) -> None:
        enter(current_session(), name)
        jobs.note.send(name)

    keyed = jobs.declare(act, "act", idempotency_key="act:{name}")

    def order(number: int) -> None:
        with Session(pooled.engine) as session, session.begin():
            jobs.enqueue(session, f"order {number:03}")

    for _ in range(3):
        for number in range(5):
            jobs.note.send_with_options(args=(f"once {number:03}",), job_id=f"once {number}")
    jobs.start()
    jobs.relay()
    leave(jobs, *(f"left {number:03}" for number in range(100)))
    for number in range(50):
        keyed.send(f"keyed {number:03}")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(order, range(400)))
    kinds = {"order": 400, "left": 100, "keyed": 50, "once": 5}
    jobs.assert_ran(*(f"{kind} {number:03}" for kind, count in kinds.items() for number in range(count)))
    assert len(entries(pooled)) == 50


def test_the_maintenance_is_seen_through_a_pooler(pooled: Store) -> None:
    """A maintenance process says that it is there, and others see it."""
    for _ in range(8):  # more often than psycopg waits until it prepares a statement
        with pooled.stateless() as connection:
            say_present(connection, "maintenance")
    assert last_seen(pooled) is not None
