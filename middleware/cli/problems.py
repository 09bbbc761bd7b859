"""What is somebody told when a command cannot do what it should, and with which exit code?

2 stands for something wrong in what was typed or set, 1 for something that failed. An error that is not
expected keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from ..errors import (
    ConfigurationError,
    DeclarationError,
    EnqueueError,
    JobsError,
    PayloadError,
    UnknownQueue,
)
from ..transport.wire import WireError

BAD_INPUT: Final = 2
FAILED: Final = 1
_UNDEFINED_TABLE: Final = "42P01"  # PostgreSQL's SQLSTATE for a table that is not there
_AWAY: Final = "cannot connect to RabbitMQ"  # how a send's reason begins when there is no connection


class BadInput(JobsError):
    """What was typed does not fit."""


EXPECTED: Final = (JobsError, DBAPIError)
"""What `explain` has words for."""


def explain(error: BaseException) -> tuple[str, int]:
    """Return the text for a person, and the exit code."""
    if isinstance(error, (BadInput, ConfigurationError, DeclarationError, PayloadError, UnknownQueue)):
        return str(error), BAD_INPUT
    if isinstance(error, WireError) or (isinstance(error, EnqueueError) and _AWAY in str(error)):
        return f"{error}; check JOBS_BROKER_URL, or start a broker with `make services`", FAILED
    if isinstance(error, DBAPIError):
        return _explain_database(error), FAILED
    return str(error), FAILED


def _explain_database(error: DBAPIError) -> str:
    text = str(error.orig).strip()
    if getattr(error.orig, "sqlstate", None) == _UNDEFINED_TABLE or text.startswith("no such table"):
        return f"expected the database to have its tables, got: {text.splitlines()[0]}; run `jobsctl migrate`"
    if isinstance(error, (OperationalError, InterfaceError)):
        text = " ".join(text.split())  # libpq breaks its lines
        return f"expected the database to answer, got: {text}; check JOBS_DATABASE_URL, start the server"
    return f"the database refuses: {text}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` for a name close to a known one, else an empty text."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
