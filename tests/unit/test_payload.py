from __future__ import annotations

import enum
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from dramatiq import Message
from hypothesis import given
from hypothesis import strategies as st

from middleware import PayloadError
from middleware.transport.payload import check_payload

LIMIT = 64 * 1024
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def check(*args: Any, names: tuple[str, ...] = (), snapshots: tuple[str, ...] = (), **kwargs: Any) -> None:
    """Check a message with these arguments."""
    message: Message[Any] = Message(
        queue_name="critical", actor_name="charge", args=args, kwargs=kwargs, options={}
    )
    check_payload(message, limit=LIMIT, names=names, snapshots=snapshots)


@given(st.lists(plain, max_size=3), st.dictionaries(st.sampled_from("abc"), plain, max_size=3))
def test_small_plain_json_travels(args: list[Any], kwargs: dict[str, Any]) -> None:
    """Whatever JSON carries unchanged may be an argument."""
    check(*args, **kwargs)


class Colour(enum.Enum):
    RED = "red"


class Model:
    """Stands for a row of an ORM."""


@pytest.mark.parametrize(
    "value",
    [
        Model(),
        datetime(2026, 1, 1, tzinfo=UTC),
        date(2026, 1, 1),
        b"bytes",
        {1, 2},
        Decimal("1.5"),
        UUID(int=1),
        Colour.RED,
        range(3),
        print,
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_with_its_type_and_the_way_out(value: object) -> None:
    """What is no plain JSON is refused, and the error advises to pass an id."""
    with pytest.raises(PayloadError) as refused:
        check(value)
    text = str(refused.value)
    assert "actor 'charge': expected args[0] to be plain JSON" in text
    assert f"got: {type(value).__name__}" in text
    assert "pass an id" in text


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"user": b""}, "kwargs['user']"),
        ({"rows": [1, {"when": date(2026, 1, 1)}]}, "kwargs['rows'][1]['when']"),
        ({"rows": {"a": {1: 2}}}, "kwargs['rows']['a'] key 1"),
        ({"number": float("nan")}, "kwargs['number'] to be a finite number"),
        ({"numbers": [1.0, float("inf")]}, "kwargs['numbers'][1] to be a finite number"),
    ],
)
def test_the_error_names_the_place(arguments: dict[str, Any], path: str) -> None:
    """The error leads to the very value that cannot travel."""
    with pytest.raises(PayloadError) as refused:
        check(**arguments)
    assert path in str(refused.value)


def test_a_positional_argument_is_named_too() -> None:
    """Where the actor's code is known, its parameter's name is in the error."""
    with pytest.raises(PayloadError, match=r"expected args\[1\] \(user\) to be"):
        check(1, Model(), names=("task", "user"))


def test_what_contains_itself_is_refused() -> None:
    """A circle ends in an error, not in a crash."""
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(PayloadError, match="nested at most 50 deep"):
        check(circle)


@pytest.mark.parametrize(
    "text", ["x" * (LIMIT + 1), "é" * (LIMIT // 6 + 1), "x" * (LIMIT // 2) + "é" * LIMIT]
)
def test_arguments_above_the_limit_are_refused(text: str) -> None:
    """All arguments together stay within the limit, counted as JSON."""
    with pytest.raises(PayloadError, match=f"expected the arguments to be at most {LIMIT} bytes as JSON"):
        check(text)


def test_arguments_are_counted_together() -> None:
    """Two arguments that each fit may be too much together."""
    half = "x" * (LIMIT // 2 + 1)
    check(half)
    with pytest.raises(PayloadError, match="at most"):
        check(half, half)


@pytest.mark.parametrize("value", [list(range(2000)), {"text": "x" * 5000}], ids=["list", "dict"])
def test_a_large_container_travels_only_if_it_is_meant(value: Any) -> None:
    """A dict or list above 4 KiB is refused unless the actor declares it as a snapshot."""
    with pytest.raises(PayloadError, match=r"at most 4096 bytes.*snapshots=\('rows',\)"):
        check(rows=value)
    check(rows=value, snapshots=("rows",))
    with pytest.raises(PayloadError, match=r"args\[0\] \(rows\)"):
        check(value, names=("rows",))
    check(value, names=("rows",), snapshots=("rows",))


def test_a_snapshot_is_bound_by_the_limit_all_the_same() -> None:
    """A declared snapshot may be larger than 4 KiB but not larger than all arguments may be."""
    with pytest.raises(PayloadError, match=f"at most {LIMIT} bytes"):
        check(rows=["x" * 1000] * 100, snapshots=("rows",))
