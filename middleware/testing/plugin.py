"""Which fixtures do a team's tests get? `pytest_plugins = ["middleware.testing.plugin"]` in `conftest.py`.

The only module of the library that imports pytest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .crash_points import CrashPoints
from .held_jobs import HeldJobs


@pytest.fixture
def crash_points() -> CrashPoints:
    """Check that an actor's effect takes place once, wherever its worker dies: `crash_points.check(…)`."""
    return CrashPoints()


@pytest.fixture
def held_jobs() -> Iterator[HeldJobs]:
    """Hold what the test sends: `held_jobs.assert_enqueued(…)`, `.drain()`, `.perform(…)`."""
    with HeldJobs() as jobs:
        yield jobs
