from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from middleware import DeclarationError, Queue


def test_a_queue_needs_only_a_name() -> None:
    """The defaults are those of production."""
    queue = Queue(name="critical")
    assert (queue.prefetch, queue.delivery_limit, queue.serial) == (16, 1000, False)
    assert queue.time_limit == timedelta(minutes=2)


@pytest.mark.parametrize("name", ["critical", "a", "_x", "my-queue.eu_1", "delay", "XQ"])
def test_ordinary_names_are_taken(name: str) -> None:
    """Letters, digits, dots, underscores and hyphens make a name."""
    assert Queue(name=name).name == name


@pytest.mark.parametrize("name", ["critical.XQ", "critical.DQ", "critical.delay", "a.delay.07", "a.delays"])
def test_reserved_endings_are_refused(name: str) -> None:
    """The kit's own queues have these endings."""
    with pytest.raises(DeclarationError, match=r"expected name to be free of the reserved endings .* got: "):
        Queue(name=name)


@pytest.mark.parametrize("name", ["", "1st", "a b", "ä", "a/b", "-a", "a\n", "amq.*"])
def test_other_names_are_refused(name: str) -> None:
    """A name that RabbitMQ, a log line or a shell would stumble over is refused."""
    with pytest.raises(DeclarationError, match="expected name to be a letter or underscore"):
        Queue(name=name)


def test_a_name_leaves_room_for_the_ladders() -> None:
    """The longest name is short enough for the ladder's longer ones."""
    Queue(name="a" * 200)
    with pytest.raises(DeclarationError, match="expected name to be at most 200 characters"):
        Queue(name="a" * 201)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prefetch", 0),
        ("prefetch", 65536),
        ("delivery_limit", 19),
        ("delivery_limit", -1),
        ("delivery_limit", 1_000_001),
        ("time_limit", timedelta(0)),
    ],
)
def test_values_out_of_range_are_refused(field: str, value: Any) -> None:
    """A value out of range names queue, field, rule and value."""
    with pytest.raises(DeclarationError) as refused:
        Queue(name="critical", **{field: value})
    assert f"queue 'critical': expected {field} to be" in str(refused.value)
    assert f"got: {value!r}" in str(refused.value)


def test_a_serial_queue_takes_one_job_at_a_time() -> None:
    """`serial` overrules the prefetch."""
    assert Queue(name="one", serial=True, prefetch=20).prefetch == 1
