"""How does a failing test's log show what matters? Without the tracebacks of workers that died on purpose."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .life import Crashed

_LOGGERS: Final = ("dramatiq.worker.WorkerThread", "middleware.failures.failures")
_NAME: Final = f"{Crashed.__module__}.{Crashed.__name__}"


@contextmanager
def quiet_crashes() -> Iterator[None]:
    """Keep simulated crashes out of the log while the block runs."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(_is_real)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_real)


def _is_real(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, Crashed) and _NAME not in record.getMessage()
