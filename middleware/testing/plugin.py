"""Which fixtures do a team's tests get? `pytest_plugins = ["middleware.testing.plugin"]` in `conftest.py`.

The only module of the library that imports pytest.
"""

from __future__ import annotations

import pytest

from .crash_points import CrashPoints


@pytest.fixture
def crash_points() -> CrashPoints:
    """Check that an actor's effect takes place once, wherever its worker dies: `crash_points.check(…)`."""
    return CrashPoints()
