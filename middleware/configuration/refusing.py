"""How does a worker's start end when a setting is wrong?"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import ConfigurationError

EXIT_SETTINGS: Final = 2
"""Dramatiq's own code for a module that cannot be imported, which is where settings are read."""

_log: Final = logging.getLogger(__name__)


@contextmanager
def refusing_start() -> Iterator[None]:
    """Make a wrong setting end a worker's start with one line and exit code 2, without a traceback.

    Anywhere but in the `dramatiq` command the error is raised as it is.
    """
    try:
        yield
    except ConfigurationError as error:
        if "dramatiq.cli" not in sys.modules:  # only that command loads it
            raise
        for problem in str(error).splitlines():
            _log.critical("Refusing to start: %s", problem)
        raise SystemExit(EXIT_SETTINGS) from None
