"""What does an exception mean? Pure: an exception goes in, a kind comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from dramatiq.errors import ActorNotFound, RateLimitExceeded, Retry
from dramatiq.middleware import TimeLimitExceeded
from sqlalchemy import exc as sql

from ..errors import (
    BusinessReject,
    EnqueueError,
    Invalid,
    KeyConflict,
    LedgerViolation,
    NotDone,
    PayloadError,
    UnknownOutcome,
    UnknownQueue,
    Unprovable,
)
from .kinds import Kind

Throws: TypeAlias = type[BaseException] | tuple[type[BaseException], ...] | None

# The most specific first; an exception is what the first matching row says.
_RULES: Final[tuple[tuple[tuple[type[BaseException], ...], Kind], ...]] = (
    ((Invalid,), Kind.INVALID),
    ((BusinessReject,), Kind.REJECTED),
    ((KeyConflict,), Kind.KEY_CONFLICT),
    ((LedgerViolation,), Kind.UNEXPECTED),
    ((UnknownOutcome,), Kind.UNKNOWN_OUTCOME),
    ((Unprovable,), Kind.UNPROVABLE),
    ((NotDone,), Kind.TRANSIENT),
    ((PayloadError, UnknownQueue), Kind.INVALID),  # what the job sends or hands on is wrong and stays wrong
    ((EnqueueError, Retry, RateLimitExceeded), Kind.TRANSIENT),
    ((TimeLimitExceeded,), Kind.TIMEOUT),
    ((ActorNotFound,), Kind.UNKNOWN_ACTOR),
    ((sql.IntegrityError, sql.DataError, sql.ProgrammingError), Kind.UNEXPECTED),
    ((sql.OperationalError, sql.InterfaceError, sql.TimeoutError), Kind.TRANSIENT),
    ((ConnectionError, TimeoutError), Kind.TRANSIENT),
)


def classify(error: BaseException, throws: Throws = None) -> Kind:
    """Return what kind of failure an exception is.

    Parameters:
        error: what the attempt raised; its causes are looked at when no rule knows itself.
        throws: exceptions that the actor declared as final.
    """
    if throws is not None and isinstance(error, throws):
        return Kind.PERMANENT
    for each in _chain(error):
        for kinds, kind in _RULES:
            if isinstance(each, kinds):
                return kind
    return Kind.UNEXPECTED


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its explicit causes, each once."""
    seen: set[int] = set()
    current: Any = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__
