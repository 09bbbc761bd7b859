"""What a team may get wrong with the crash-point kit is said with the way out."""

from __future__ import annotations

import pytest
from dramatiq.brokers.stub import StubBroker

import jobs  # noqa: F401  # the application, imported before isolate() is called
from middleware import ConfigurationError
from middleware.store import Store
from middleware.testing import HeldJobs, isolate

from .crash_jobs import check
from .keyed_jobs import KeyedJobs, enter


def test_isolate_comes_first() -> None:
    """An application that is imported has its settings already, and they may name a developer's services."""
    with pytest.raises(RuntimeError, match="expected isolate\\(\\) to be called before 'jobs' is imported"):
        isolate()


def test_another_broker() -> None:
    """Held jobs need one of the kit's brokers."""
    with pytest.raises(ConfigurationError, match="got: StubBroker; import the application before"):
        HeldJobs(StubBroker())


def test_one_thread(sqlite: Store) -> None:
    """With one worker thread no two deliveries can meet."""
    one = KeyedJobs(sqlite, "def", threads=1)
    act = one.actor("enter:{one}")(lambda session, one, two, three: enter(session, one))
    with pytest.raises(ValueError, match="at least 2 threads, got: 1, so that two deliveries can meet"):
        check(act)
    one.close()
