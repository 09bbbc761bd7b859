from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dramatiq import Message
from hypothesis import given
from hypothesis import strategies as st

from middleware.transport.decoding import Undecodable, decode

GOOD: dict[str, Any] = {
    "queue_name": "critical",
    "actor_name": "charge",
    "args": [1, "x"],
    "kwargs": {"flag": True},
    "options": {},
    "message_id": "b1f2",
    "message_timestamp": 1764400000000,
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def changed(**changes: Any) -> bytes:
    """Return a message's bytes with fields changed."""
    return json.dumps(GOOD | changes).encode()


def test_a_message_of_dramatiqs_is_read_as_it_is() -> None:
    """What stock Dramatiq encodes comes back field by field."""
    sent: Message[Any] = Message(
        queue_name="critical",
        actor_name="charge",
        args=(1, [2, {"three": None}]),
        kwargs={"é": "ü"},
        options={"max_retries": 3, "delay": 1000, "whatever": [1]},
    )
    assert decode(sent.encode(), "critical") == sent


def test_the_queue_is_the_one_it_came_from() -> None:
    """A message that names another queue belongs to the queue it lay in."""
    assert decode(changed(queue_name="elsewhere"), "critical").queue_name == "critical"


def test_an_eta_is_left_out() -> None:
    """An `eta` would make Dramatiq hold the job in worker memory."""
    assert decode(changed(options={"eta": 1, "max_age": 5}), "critical").options == {"max_age": 5}


@pytest.mark.parametrize("field", sorted(GOOD))
@pytest.mark.parametrize("value", [None, True, -1, 1.5, [], {}, [1], {"a": 1}, ""], ids=repr)
def test_a_field_has_its_type_or_is_named(field: str, value: Any) -> None:
    """Each field is checked: a value is taken as it is or refused with the field's name."""
    takes: dict[str, tuple[Any, ...]] = {
        "queue_name": ("",),
        "args": ([], [1]),
        "kwargs": ({}, {"a": 1}),
        "options": ({}, {"a": 1}),
    }
    if any(value == good and type(value) is type(good) for good in takes.get(field, ())):
        decode(changed(**{field: value}), "critical")
        return
    with pytest.raises(Undecodable, match=rf"expected {field} to be .* got: {re.escape(repr(value))}"):
        decode(changed(**{field: value}), "critical")


STEP = GOOD | {"options": {"pipe_ignore": True}}
OPTIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "time_limit": ([1, 0.5, float("inf")], [0, -1, "1", True, [], float("nan")]),
    "max_age": ([1, 5000.5], [0, "1", {}]),
    "max_retries": ([0, 3], [-1, 1.5, "3", True, 2**60]),
    "retries": ([0], ["0", -1]),
    "min_backoff": ([0, 1000], [-1, "x", 2**60]),
    "max_backoff": ([0, 1000], [-1, "x"]),
    "delay": ([0, 1000], [-1, "x", []]),
    "on_success": (["other"], [1, [], {}]),
    "on_failure": (["other"], [1]),
    "on_retry_exhausted": (["other"], [1]),
    "pipe_target": ([STEP], ["x", {}, [], {"options": 1}, GOOD | {"options": None}, GOOD | {"extra": 1}]),
    "pipe_ignore": ([True, False], ["yes", 1]),
    "group_completion_uuid": (["uuid"], [1]),
    "group_completion_callbacks": ([[], [STEP]], [{}, ["x"], [{}], "x"]),
    "throws": ([], ["ValueError", []]),
    "retry_when": ([], ["x", True]),
}


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_an_option_has_its_type_or_is_named(option: str) -> None:
    """Each option that Dramatiq or the kit reads is checked; None is as good as absent."""
    good, bad = OPTIONS[option]
    for value in [*good, None]:
        decode(changed(options={option: value}), "critical")
    for value in bad:
        with pytest.raises(Undecodable, match=f"expected option {option} to be "):
            decode(changed(options={option: value}), "critical")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 10_000, "not JSON"),
        (b"[]", "expected an object, got: list"),
        (b"{}", "missing: .*'actor_name'"),
        (changed(extra=1), r"unknown: \['extra'\]"),
        (changed(message_id="x" * 256), "expected message_id to be a string of 1 to 255 bytes"),
        (changed(message_id="é" * 128), "expected message_id to be a string of 1 to 255 bytes"),
        (changed(actor_name="x" * 256), "expected actor_name to be"),
        (changed(actor_name="\ud800"), "expected actor_name to be"),
        (changed(message_timestamp=2**60), "expected message_timestamp to be milliseconds since 1970"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    """The reason says what is wrong with the body."""
    with pytest.raises(Undecodable, match=reason):
        decode(body, "critical")


@given(st.binary())
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    """No body makes the decoder raise anything else."""
    with pytest.raises(Undecodable):
        decode(body, "critical")


@given(st.fixed_dictionaries({name: json_values | st.just(value) for name, value in GOOD.items()}))
def test_any_fields_are_a_message_or_refused(fields: dict[str, Any]) -> None:
    """No JSON in a message's place makes the decoder raise anything else."""
    try:
        message = decode(json.dumps(fields).encode(), "critical")
    except Undecodable:
        return
    assert message.queue_name == "critical"
    assert isinstance(message.args, tuple)


@given(st.dictionaries(st.sampled_from(sorted(OPTIONS)) | st.text(), json_values))
def test_any_options_are_taken_or_refused(options: dict[str, Any]) -> None:
    """No options make the decoder raise anything else."""
    try:
        message = decode(changed(options=options), "critical")
    except Undecodable:
        return
    assert "eta" not in message.options
