from __future__ import annotations

from datetime import timedelta
from typing import Any

import dramatiq
import pytest

from middleware import DeclarationError, InlineBroker, Queue
from tests.brokers import QUEUE, build_inline_broker


@pytest.fixture
def broker() -> InlineBroker:
    """A broker whose queue `jobs` allows 30 seconds."""
    return build_inline_broker(queues=[Queue(name=QUEUE, time_limit=timedelta(seconds=30))])


def declare(broker: InlineBroker, **options: Any) -> None:
    """Declare an actor with options."""

    @dramatiq.actor(broker=broker, queue_name=QUEUE, actor_name="charge", **options)
    def charge(task_id: str, rows: list[int]) -> None: ...


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"time_limit": 30_000},
        {"time_limit": 0.5},
        {"time_limit": None},
        {"snapshots": ("rows",)},
        {"snapshots": ["rows", "task_id"]},
        {"max_retries": 0},
        {"max_retries": None},
        {"min_backoff": 0, "max_backoff": 1},
        {"retry_when": lambda retries, error: True},
        {"throws": ValueError},
        {"throws": (ValueError, KeyError)},
        {"max_age": 1000},
        {"idempotent": "upsert by primary key"},
        {"idempotent": None},
        {"on_success": "other", "on_failure": "other", "on_retry_exhausted": "other"},
    ],
    ids=" ".join,
)
def test_options_of_dramatiq_and_the_kit_are_taken(broker: InlineBroker, options: dict[str, Any]) -> None:
    """Each known option with a sensible value is accepted."""
    declare(broker, **options)
    assert "charge" in broker.actors


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("time_limit", 30_001, "at most 30000, the limit of queue 'jobs'"),
        ("time_limit", 0, "milliseconds above zero"),
        ("time_limit", "1000", "milliseconds above zero"),
        ("time_limit", True, "milliseconds above zero"),
        ("idempotent", "", "a text, got: ''"),
        ("idempotent", " ", "a text, got: ' '"),
        ("idempotent", True, "a text, got: True"),
        ("snapshots", ("row",), "a tuple of its parameters (task_id, rows)"),
        ("snapshots", "rows", "a tuple of its parameters"),
        ("max_retries", -1, "a whole number, 0 or more, or None"),
        ("max_retries", 1.5, "a whole number"),
        ("max_retries", True, "a whole number"),
        ("min_backoff", "1s", "a whole number"),
        ("max_backoff", timedelta(seconds=1), "a whole number"),
        ("retry_when", 3, "callable with (retries, exception)"),
        ("throws", "ValueError", "an exception class or a tuple of them"),
        ("throws", (ValueError, 1), "an exception class or a tuple of them"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_declared(
    broker: InlineBroker, option: str, value: Any, rule: str
) -> None:
    """A wrong value raises at the declaration and names actor, option, rule and value."""
    with pytest.raises(DeclarationError) as refused:
        declare(broker, **{option: value})
    text = str(refused.value)
    assert f"actor 'charge': expected {option} to be" in text
    assert rule in text
    assert f"got: {value!r}" in text
    assert "charge" not in broker.actors


def test_an_async_actors_parameters_are_known(broker: InlineBroker) -> None:
    """The check looks at the function as it was written."""

    @dramatiq.actor(broker=broker, queue_name=QUEUE, snapshots=("rows",))
    async def later(rows: list[int]) -> None: ...

    with pytest.raises(DeclarationError, match=r"\(rows\)"):

        @dramatiq.actor(broker=broker, queue_name=QUEUE, snapshots=("args",))
        async def wrong(rows: list[int]) -> None: ...


@pytest.mark.parametrize(
    ("actor_ms", "message_ms", "seconds"),
    [
        (None, None, 30),
        (1000, None, 1),
        (None, 2000, 2),
        (1000, 2000, 1),
        (2000, 1000, 1),
        (1000, float("inf"), 1),
        (None, 10**30, 30),
    ],
)
def test_the_shortest_time_limit_counts(
    broker: InlineBroker, actor_ms: int | None, message_ms: float | None, seconds: float
) -> None:
    """Of the limits of message, actor and queue the shortest counts."""
    declare(broker, **({} if actor_ms is None else {"time_limit": actor_ms}))
    options = {} if message_ms is None else {"time_limit": message_ms}
    assert broker.time_limit_of("charge", options) == timedelta(seconds=seconds)
