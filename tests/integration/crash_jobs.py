"""How does a test try the crash-point kit on the tests' actors, and read what it found?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from dramatiq import Actor
from sqlalchemy import text
from sqlalchemy.orm import Session

from middleware.store import Store
from middleware.testing import CrashPoints

from .keyed_jobs import KeyedJobs


def entered(session: Session) -> int:
    """Return how many entries there are."""
    found: int = session.scalars(text("SELECT count(*) FROM credit_entries")).one()
    return found


def clean(session: Session) -> None:
    """Put the entries back as they were."""
    session.execute(text("DELETE FROM credit_entries"))


def check(actor: Actor[..., Any], *args: Any, **options: Any) -> list[str]:
    """Check an actor whose effect is one entry, with patience for as long as a test may take."""
    kit = CrashPoints(timeout=timedelta(seconds=15))
    return kit.check(actor, *(args or ("a",)), **{"effect": entered, "prepare": clean, **options})


def refusal(actor: Actor[..., Any], *args: Any, **options: Any) -> str:
    """Return what the kit has found wrong with an actor."""
    with pytest.raises(AssertionError) as caught:
        check(actor, *args, **options)
    return str(caught.value)


DEF: Final = pytest.mark.parametrize("kind", ["def"])
SQLITE: Final = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL: Final = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
"""For what has nothing to do with the kind of the actor, or of the database."""


@pytest.fixture
def hasty_jobs(store: Store, kind: str) -> Iterator[KeyedJobs]:
    """Keyed actors that wait 200 ms for a twin."""
    jobs = KeyedJobs(store, kind, wait=timedelta(milliseconds=200))
    yield jobs
    jobs.close()
