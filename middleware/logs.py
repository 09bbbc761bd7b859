"""How does the kit log? One event name a step, ids as fields, through Python's own logging.

Whoever runs the process configures `logging`, as `dramatiq` does for its workers; a record's text is the
event followed by `key=value` fields.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger


def _render(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> tuple[tuple[str], dict[str, Any]]:
    """Return what the standard library's logger is called with: `event key=value …`."""
    text, exc_info = str(event.pop("event")), event.pop("exc_info", None)
    fields = " ".join(f"{key}={_value(value)}" for key, value in event.items())
    return (f"{text} {fields}" if fields else text,), {"exc_info": exc_info}


def _value(value: object) -> str:
    text = str(value)
    return repr(text) if not text or any(c.isspace() or c == "=" for c in text) else text


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its class if it has none.

    >>> first_line(ValueError("no such table\\n[SQL: …]")), first_line(TimeoutError())
    ('no such table', 'TimeoutError')
    """
    return str(error).strip().partition("\n")[0] or type(error).__name__


def get_logger(name: str) -> FilteringBoundLogger:
    """Return a logger of that name whose methods take an event and fields.

    Parameters:
        name: the name of the standard library's logger; usually the module's.
    """
    logger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _render],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return cast(FilteringBoundLogger, logger)
