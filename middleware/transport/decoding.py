"""Is what came off the wire a message that a worker can take?

Everything is checked field by field before a worker thread sees it: Dramatiq reads these fields outside
any protection, and one wrong type there ends a worker thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from dramatiq import Message

from .submission import MODES

_FIELDS: Final = {"queue_name", "actor_name", "args", "kwargs", "options", "message_id", "message_timestamp"}
_LONGEST_ID: Final = 255  # bytes: an AMQP short string, which carries id and actor in the properties
_LARGEST: Final = 2**53


class Undecodable(ValueError):
    """The body is not a message; the text says why."""


def decode(body: bytes, queue: str) -> Message[Any]:
    """Turn a body into a message.

    Parameters:
        body: as it came off the wire.
        queue: the queue it came from, which replaces the name in the body: another one would make
            Dramatiq settle it with the wrong consumer.

    Raises:
        Undecodable: the body is not a message that Dramatiq can process.
    """
    try:
        fields = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"not JSON: {error}") from None
    _check_fields(fields)
    return Message(
        queue_name=queue,
        actor_name=fields["actor_name"],
        args=tuple(fields["args"]),
        kwargs=fields["kwargs"],
        options=_options(fields["options"]),
        message_id=fields["message_id"],
        message_timestamp=fields["message_timestamp"],
    )


def _check_fields(fields: Any) -> None:
    if not isinstance(fields, dict):
        raise Undecodable(f"expected an object, got: {type(fields).__name__}")
    if fields.keys() != _FIELDS:
        missing, extra = sorted(_FIELDS - fields.keys()), sorted(fields.keys() - _FIELDS)
        raise Undecodable(f"expected the fields of a Dramatiq message; missing: {missing}, unknown: {extra}")
    check_fields(fields)


def check_fields(fields: Mapping[str, Any]) -> None:
    """Check the type of each field of a message.

    Raises:
        Undecodable: names field, rule and value.
    """
    for name, holds, rule in _RULES:
        if not holds(fields[name]):
            raise Undecodable(f"expected {name} to be {rule}, got: {repr(fields[name])[:200]}")


def _is_id(value: object) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        return len(value.encode("utf-8")) <= _LONGEST_ID
    except UnicodeEncodeError:
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    """A whole number, of retries or milliseconds, from zero up to what a double holds exactly."""
    return _is_whole(value) and 0 <= value < _LARGEST  # type: ignore[operator]  # _is_whole narrows


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_RULES: Final[tuple[tuple[str, Callable[[object], bool], str], ...]] = (
    ("queue_name", _is_name, "a string"),
    ("actor_name", _is_id, f"a name of 1 to {_LONGEST_ID} bytes"),
    ("args", _is_list, "a list"),
    ("kwargs", _is_object, "an object"),
    ("options", _is_object, "an object"),
    ("message_id", _is_id, f"a string of 1 to {_LONGEST_ID} bytes"),
    ("message_timestamp", _is_count, "milliseconds since 1970"),
)


def _is_duration(value: object) -> bool:
    """A number above zero, or infinity, which Dramatiq takes as no limit; NaN is above nothing."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_message(value: object) -> bool:
    """A message within a message, such as a pipeline's next step: held to the same rules."""
    try:
        _check_fields(value)
        check_options(value["options"])  # type: ignore[index]  # a dict by now
    except Undecodable:
        return False
    # What follows a job is stored with its outcome, where no id can be taken.
    return "job_id" not in value["options"]  # type: ignore[index]  # as above


def _is_messages(value: object) -> bool:
    return isinstance(value, list) and all(_is_message(item) for item in value)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_OPTIONS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "time_limit": (_is_duration, "milliseconds above zero"),
    "max_age": (_is_duration, "milliseconds above zero"),
    "max_retries": (_is_count, "a count"),
    "retries": (_is_count, "a count"),
    "min_backoff": (_is_count, "milliseconds"),
    "max_backoff": (_is_count, "milliseconds"),
    "delay": (_is_count, "milliseconds"),
    "on_success": (_is_name, "an actor's name"),
    "on_failure": (_is_name, "an actor's name"),
    "on_retry_exhausted": (_is_name, "an actor's name"),
    "pipe_target": (_is_message, "a message without a job_id"),
    "pipe_ignore": (_is_flag, "true or false"),
    "group_completion_uuid": (_is_name, "a string"),
    "group_completion_callbacks": (_is_messages, "a list of messages without a job_id"),
    "job_id": (_is_id, f"a string of 1 to {_LONGEST_ID} bytes"),
    "job_mode": (MODES.__contains__, f"one of {', '.join(MODES)}"),
    "job_window": (_is_count, "milliseconds"),
    "job_generation": (_is_count, "a count"),
}
# JSON cannot carry exception classes or functions, so whoever wrote these did not write them for Dramatiq.
_FORBIDDEN: Final = ("throws", "retry_when")


def check_options(options: dict[str, Any]) -> None:
    """Check the options that Dramatiq and the kit read from a message.

    Raises:
        Undecodable: names option, rule and value.
    """
    for name in _FORBIDDEN:
        if options.get(name) is not None:
            raise Undecodable(
                f"expected option {name} to be absent (it belongs to the actor), got: {options[name]!r}"
            )
    for name, (holds, rule) in _OPTIONS.items():
        value = options.get(name)
        if value is not None and not holds(value):
            raise Undecodable(f"expected option {name} to be {rule}, got: {repr(value)[:200]}")


def _options(options: dict[str, Any]) -> dict[str, Any]:
    check_options(options)
    # A delay waits in the broker; an eta left here would make Dramatiq hold the job in worker memory.
    return {name: value for name, value in options.items() if name not in {"eta", *_FORBIDDEN}}
