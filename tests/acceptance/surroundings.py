"""What does a command get of the environment that the tests run in? What it needs of the machine."""

from __future__ import annotations

import os
from typing import Final

_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


def surroundings(**settings: str) -> dict[str, str]:
    """Return a command's environment; `.env` is not read."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, "JOBS_ENV_FILE": "", **settings}
