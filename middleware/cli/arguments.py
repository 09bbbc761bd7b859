"""Which arguments does an actor get when they are typed in a shell?

A word is read as JSON if it parses and kept as text if not: `3`, `true` and `[1,2]` are what they look like.
A parameter that is declared as text keeps its word as it is, so that `007` stays an id.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

from dramatiq import Actor

from ..transport.wrapping import function_of
from .problems import BadInput


def read_arguments(
    actor: Actor[..., Any], words: Sequence[str], kwargs_json: str | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments for a message.

    Parameters:
        actor: who gets them.
        words: positional arguments as typed.
        kwargs_json: a JSON object with keyword arguments; None means none.

    Raises:
        BadInput: the object is not one, or the actor's signature does not take the arguments.
    """
    signature = _signature(actor)
    args = tuple(
        word if is_text else _json_or_text(word)
        for word, is_text in zip(words, _text_positions(signature, len(words)), strict=True)
    )
    kwargs = _read_object(kwargs_json)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise BadInput(
            f"expected the arguments to fit {describe_signature(actor)}, got: {_call(args, kwargs)}; {error}"
        ) from None
    return args, kwargs


def describe_signature(actor: Actor[..., Any]) -> str:
    """Return an actor's name and parameters as they are declared."""
    return f"{actor.actor_name}{_signature(actor).replace(return_annotation=inspect.Signature.empty)}"


def _signature(actor: Actor[..., Any]) -> inspect.Signature:
    function = function_of(actor)
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError, SyntaxError):  # annotations that only a type checker can see
        return inspect.signature(function)


def _text_positions(signature: inspect.Signature, count: int) -> list[bool]:
    """Return for each of the first `count` positional arguments whether it is declared as text."""
    found: list[bool] = []
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found += [_is_text(parameter.annotation)] * (count - len(found))
        elif parameter.kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            found.append(_is_text(parameter.annotation))
    return (found + [False] * count)[:count]


def _is_text(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return str in get_args(annotation) and set(get_args(annotation)) <= {str, type(None)}
    return annotation in (str, "str", "str | None")


def _json_or_text(word: str) -> Any:
    try:
        return json.loads(word, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return word


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON, although Python reads it")


def _read_object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadInput(
            f"""expected --kwargs to be a JSON object, got: {text!r}; write it like '{{"name": 1}}'"""
        )
    return value


def _call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [f"{name}={value!r}" for name, value in kwargs.items()]
    return f"({', '.join([*(repr(value) for value in args), *named])})"
