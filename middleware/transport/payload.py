"""May these arguments travel in a message?

A message carries references: ids, small values. A model or a large document that travels is stale when
the job runs, and a queue full of them is a slow database. The guard says so at the caller.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any, Final

from dramatiq import Message

from ..errors import PayloadError

CONTAINER_LIMIT: Final = 4 * 1024
"""Bytes of JSON that one dict or list argument may take."""
_ADVICE: Final = "pass an id and read the data when the job runs"
_SCALARS: Final = (str, int, bool, type(None))


def check_payload(
    message: Message[Any], *, limit: int, snapshots: Collection[str] = (), names: Collection[str] = ()
) -> None:
    """Refuse arguments that are not plain JSON or too large.

    Parameters:
        message: about to be enqueued.
        limit: bytes that its arguments may take as JSON.
        snapshots: arguments that are meant to travel as they are: dicts and lists above 4 KiB are
            accepted for them.
        names: the actor's positional parameters, to tell which argument is which.

    Raises:
        PayloadError: names the argument, the rule and the way out.
    """
    names = list(names)
    total = 0
    for position, value in enumerate(message.args):
        name = names[position] if position < len(names) else ""
        total += _check_argument(message, value, f"args[{position}]", name, snapshots)
    for name, value in message.kwargs.items():
        total += _check_argument(message, value, f"kwargs[{name!r}]", name, snapshots)
    if total > limit:
        raise PayloadError(
            f"actor {message.actor_name!r}: expected the arguments to be at most {limit} bytes as JSON, "
            f"got: {total}; {_ADVICE}"
        )


def _check_argument(
    message: Message[Any], value: object, path: str, name: str, snapshots: Collection[str]
) -> int:
    if type(value) in _SCALARS:
        if type(value) is not str:
            return 8
        return len(value) if value.isascii() else len(json.dumps(value))
    label = f"{path} ({name})" if name and not path.startswith("kwargs") else path
    _walk(message, value, label, depth=0)
    size = len(json.dumps(value))
    if isinstance(value, dict | list | tuple) and size > CONTAINER_LIMIT and name not in snapshots:
        raise PayloadError(
            f"actor {message.actor_name!r}: expected {label} to be at most {CONTAINER_LIMIT} bytes as JSON, "
            f"got: {size}; {_ADVICE}, or declare snapshots=({name or 'its name'!r},) if the copy is meant"
        )
    return size


def _walk(message: Message[Any], value: object, path: str, depth: int) -> None:
    """Refuse the first thing that JSON cannot carry unchanged."""
    if depth > 50:
        raise PayloadError(
            f"actor {message.actor_name!r}: expected {path[:80]}… to be nested at most 50 deep; {_ADVICE}"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _not_plain(message, key, f"{path} key {key!r}", "a string")
            _walk(message, item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _walk(message, item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise PayloadError(
                f"actor {message.actor_name!r}: expected {path} to be a finite number, got: {value!r}; "
                "JSON has no other, pass None or its text"
            )
    elif type(value) not in _SCALARS:
        raise _not_plain(message, value, path, "plain JSON (str, int, float, bool, None, list, dict)")


def _not_plain(message: Message[Any], value: object, path: str, rule: str) -> PayloadError:
    return PayloadError(
        f"actor {message.actor_name!r}: expected {path} to be {rule}, got: {type(value).__name__}; "
        f"{_ADVICE}, or pass its text (for example .isoformat() of a datetime)"
    )
