from __future__ import annotations

import pytest
from dramatiq.errors import ActorNotFound, RateLimitExceeded, Retry
from dramatiq.middleware import TimeLimitExceeded
from sqlalchemy import exc as sql

from middleware import (
    BusinessReject,
    EnqueueUnknown,
    Invalid,
    KeyConflict,
    LedgerViolation,
    NotDone,
    NotEnqueued,
    PayloadError,
    UnknownOutcome,
    UnknownQueue,
)
from middleware.failures.classify import classify
from middleware.failures.kinds import Kind


def database_error(kind: type[sql.DBAPIError]) -> sql.DBAPIError:
    """Return an error as SQLAlchemy raises it."""
    return kind("SELECT 1", {}, Exception("original"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Invalid("x"), Kind.INVALID),
        (BusinessReject("x"), Kind.REJECTED),
        (KeyConflict("x"), Kind.KEY_CONFLICT),
        (LedgerViolation("x"), Kind.UNEXPECTED),
        (NotDone("x"), Kind.TRANSIENT),
        (UnknownOutcome("x"), Kind.UNKNOWN_OUTCOME),
        (Retry("x"), Kind.TRANSIENT),
        (RateLimitExceeded("x"), Kind.TRANSIENT),
        (TimeLimitExceeded(), Kind.TIMEOUT),
        (ActorNotFound("x"), Kind.UNKNOWN_ACTOR),
        (PayloadError("x"), Kind.INVALID),
        (UnknownQueue("x"), Kind.INVALID),
        (NotEnqueued("x"), Kind.TRANSIENT),
        (EnqueueUnknown("x"), Kind.TRANSIENT),
        (database_error(sql.OperationalError), Kind.TRANSIENT),
        (database_error(sql.InterfaceError), Kind.TRANSIENT),
        (sql.TimeoutError("pool"), Kind.TRANSIENT),
        (database_error(sql.IntegrityError), Kind.UNEXPECTED),
        (database_error(sql.DataError), Kind.UNEXPECTED),
        (database_error(sql.ProgrammingError), Kind.UNEXPECTED),
        (ConnectionResetError(), Kind.TRANSIENT),
        (TimeoutError(), Kind.TRANSIENT),
        (KeyError("x"), Kind.UNEXPECTED),
        (SystemExit(1), Kind.UNEXPECTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_an_exception_has_its_kind(error: BaseException, kind: Kind) -> None:
    """Each exception that the kit knows has its kind, every other one is unexpected."""
    assert classify(error) is kind


def test_what_the_actor_throws_is_permanent_whatever_it_is() -> None:
    """`throws` counts before every rule, for subclasses too."""
    assert classify(ConnectionResetError(), (ConnectionError,)) is Kind.PERMANENT
    assert classify(Invalid("x"), Invalid) is Kind.PERMANENT
    assert classify(KeyError("x"), (ValueError,)) is Kind.UNEXPECTED


def chained(outer: Exception, inner: Exception) -> Exception:
    """Return an exception raised from another one."""
    try:
        raise outer from inner
    except Exception as error:
        return error


def test_a_wrapped_cause_counts_where_the_wrapper_says_nothing() -> None:
    """An exception of no rule is what its explicit cause is, however deep."""
    cause = chained(RuntimeError("client"), ConnectionResetError())
    assert classify(chained(RuntimeError("service"), cause)) is Kind.TRANSIENT


def test_a_wrapper_that_says_something_counts_before_its_cause() -> None:
    """An actor that turns a connection's error into `Invalid` means it."""
    assert classify(chained(Invalid("x"), ConnectionResetError())) is Kind.INVALID


def test_a_circle_of_causes_ends() -> None:
    """Exceptions that cause each other are looked at once."""
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify(first) is Kind.UNEXPECTED


def test_three_kinds_are_retried() -> None:
    """Only what may pass by itself is worth another attempt."""
    assert {kind for kind in Kind if kind.is_retried} == {Kind.TRANSIENT, Kind.TIMEOUT, Kind.UNEXPECTED}
