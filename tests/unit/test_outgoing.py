"""What is refused before it is published?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq import Message
from hypothesis import given
from hypothesis import strategies as st

from middleware import InlineBroker, NotEnqueued, PayloadError, Queue
from middleware.transport.outgoing import Outgoing
from middleware.transport.publication import Publication

QUEUE = Queue(name="jobs")
NAN, INFINITY = float("nan"), float("inf")
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=2)
    ),
    max_leaves=4,
)


def message(**fields: Any) -> Message[Any]:
    """Return a message with these fields instead of good ones."""
    good = {"queue_name": QUEUE.name, "actor_name": "charge", "args": (1,), "kwargs": {}, "options": {}}
    return Message(**good | fields)


def prepare(message: Message[Any], delay_ms: Any = None) -> Publication:
    """Check a message and return its publication."""
    outgoing = Outgoing({QUEUE.name: QUEUE}, timedelta(days=1), 64 * 1024)
    outgoing.check(message, None)
    return outgoing.publication(message, delay_ms)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"message_timestamp": "x"}, "expected message_timestamp to be milliseconds since 1970, got: 'x'"),
        ({"message_timestamp": None}, "message_timestamp"),
        ({"message_timestamp": 1.5}, "message_timestamp"),
        ({"message_timestamp": NAN}, "message_timestamp"),
        ({"message_timestamp": True}, "message_timestamp"),
        ({"message_timestamp": -1}, "message_timestamp"),
        ({"message_timestamp": 2**60}, "message_timestamp"),
        ({"message_id": None}, "expected message_id to be a string of 1 to 255 bytes, got: None"),
        ({"message_id": ""}, "message_id"),
        ({"message_id": "x" * 256}, "message_id"),
        ({"message_id": "\ud800"}, "message_id"),
        ({"actor_name": 7}, "expected actor_name to be a name of 1 to 255 bytes, got: 7"),
        ({"actor_name": "x" * 256}, "actor_name"),
        ({"queue_name": None}, "expected queue_name to be a string, got: None"),
        ({"queue_name": "nowhere"}, "nowhere"),
        ({"kwargs": None}, "expected kwargs to be an object, got: None"),
        ({"kwargs": [1]}, "kwargs"),
        ({"kwargs": {1: 2}}, "expected kwargs key 1 to be a string, got: int"),
        ({"kwargs": {None: 2}}, "kwargs key None"),
        ({"kwargs": {(1, 2): 2}}, "kwargs key (1, 2)"),
        ({"options": None}, "expected options to be an object, got: None"),
        ({"options": {1: 2}}, "expected options key 1 to be a string, got: int"),
        (
            {"options": {"max_age": INFINITY}},
            "expected option max_age to be JSON, which has no NaN and no Infinity, got: inf",
        ),
        (
            {"options": {"time_limit": INFINITY}},
            "expected option time_limit to be JSON, which has no NaN and no Infinity, got: inf",
        ),
        (
            {"options": {"time_limit": NAN}},
            "expected option time_limit to be milliseconds above zero, got: nan",
        ),
        ({"options": {"max_retries": NAN}}, "option max_retries"),
        ({"options": {"delay": "5"}}, "option delay"),
        ({"options": {"mine": -INFINITY}}, "expected option mine to be JSON, which has no NaN"),
        ({"options": {"mine": [{"deep": NAN}]}}, "got: [{'deep': nan}]"),
        ({"options": {"mine": {1, 2}}}, "set"),
        ({"options": {"mine": {(1, 2): 3}}}, "plain JSON"),
        ({"args": (NAN,)}, "expected args[0] to be a finite number, got: nan"),
        ({"kwargs": {"amount": INFINITY}}, "expected kwargs['amount'] to be a finite number, got: inf"),
    ],
)
def test_what_a_worker_could_not_read_is_refused_by_name(fields: dict[str, Any], text: str) -> None:
    """A field or option of the wrong type, and a number that JSON has not, raise at the sender."""
    with pytest.raises(NotEnqueued) as refused:
        prepare(message(**fields))
    assert text in str(refused.value)
    assert "got: " in str(refused.value) or "JSON" in str(refused.value)


@pytest.mark.parametrize(
    "delay",
    ["5", "", b"5", [], {}, True, False, NAN, INFINITY, -INFINITY, -1, 2**70, timedelta(seconds=5), object()],
)
def test_a_delay_is_a_number_of_milliseconds(delay: Any) -> None:
    """Any other delay raises with its value and a way out."""
    with pytest.raises(NotEnqueued, match="expected delay to be ") as refused:
        prepare(message(), delay)
    assert f"got: {delay!r}" in str(refused.value)


@pytest.mark.parametrize("delay", [None, 0, 0.0])
def test_no_delay_is_now(delay: Any) -> None:
    """None and zero do not wait."""
    assert prepare(message(), delay).ticks == 0


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_word_is_no_number(word: str) -> None:
    """Texts that read like numbers which JSON has not are texts."""
    sent = message(args=(word,), kwargs={word: word}, options={word: [word]})
    assert json.loads(prepare(sent).body)["args"] == [word]


@given(
    st.dictionaries(
        st.sampled_from(
            ["message_timestamp", "message_id", "actor_name", "queue_name", "kwargs", "options", "args"]
        ),
        anything,
        max_size=3,
    ),
    anything,
)
def test_nothing_but_json_is_published(fields: dict[str, Any], delay: Any) -> None:
    """Whatever a message holds, it is refused as NotEnqueued or becomes JSON that any language reads."""
    args = fields.get("args", ())
    fields["args"] = args if isinstance(args, list | tuple) else (args,)
    try:
        body = prepare(message(**fields), delay).body
    except NotEnqueued:
        return
    assert json.loads(body, parse_constant=pytest.fail)["kwargs"] == json.loads(
        json.dumps(fields.get("kwargs", {}))
    )


@contextmanager
def another_encoder() -> Iterator[None]:
    """Have Dramatiq write something that is no JSON."""
    usual = dramatiq.get_encoder()
    dramatiq.set_encoder(dramatiq.PickleEncoder())
    try:
        yield
    finally:
        dramatiq.set_encoder(usual)


def test_another_encoder_is_refused() -> None:
    """A body that no worker of the kit reads raises at the sender, and the error names what wrote it."""
    with another_encoder(), pytest.raises(PayloadError, match="PickleEncoder"):
        prepare(message())


def test_what_follows_a_job_is_checked_as_well() -> None:
    """A message that is sent while its sender's messages are collected raises where it can fail the job."""
    broker = InlineBroker(queues=[QUEUE], middleware=[])
    broker._collecting.messages = []
    for wrong in (
        message(message_timestamp="x"),
        message(options={"max_age": INFINITY}),
        message(args=(NAN,)),
        message(kwargs={1: 1}),
    ):
        with pytest.raises(NotEnqueued):
            broker.enqueue(wrong)
    with pytest.raises(NotEnqueued):
        broker.enqueue(message(), delay="5")  # type: ignore[arg-type]  # the wrong type is the point
    assert not broker._collecting.messages
    broker.close()
