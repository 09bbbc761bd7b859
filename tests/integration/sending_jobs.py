"""How does a test run keyed actors that send other jobs, or that others follow?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dramatiq.middleware import Callbacks, GroupCallbacks, Pipelines
from dramatiq.rate_limits.backends import StubBackend

from middleware.store import Store

from ..journal import Journal
from ..waiting import wait_until
from .keyed_jobs import KeyedJobs, rows


class SendingJobs(KeyedJobs):
    """Keyed actors with everything that can follow them, and an actor without a key that notes."""

    def __init__(self, store: Store, kind: str) -> None:
        self.barriers = StubBackend()
        super().__init__(store, kind, more=[Callbacks(), Pipelines(), GroupCallbacks(self.barriers)])
        self.journal = Journal()
        self.note = self.declare(lambda *facts: self.journal.note(facts), "note")

    def wait_until_done(self) -> None:
        """Wait until nothing waits in the outbox, and no job in the broker."""
        wait_until(lambda: not rows(self.store.engine, "SELECT id FROM job_outbox"), what="an empty outbox")
        self.broker.join_all()


@pytest.fixture
def sending(store: Store, kind: str) -> Iterator[SendingJobs]:
    """Keyed actors of either kind on a database of either kind."""
    jobs = SendingJobs(store, kind)
    yield jobs
    jobs.close()


@pytest.fixture
def sync_sending(store: Store) -> Iterator[SendingJobs]:
    """`def` actors on a database of either kind."""
    jobs = SendingJobs(store, "def")
    yield jobs
    jobs.close()
