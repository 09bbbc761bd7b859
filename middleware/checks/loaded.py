"""What does the loaded application know of its actors that their source does not show?"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import typing
from pathlib import Path
from typing import Any, Final

import dramatiq

from ..transport.wrapping import function_of
from .actors import Actor, Option
from .inspection import Inspection
from .module import Module

_PLACED: Final = ("queue_name", "idempotency_key", "effect", "idempotent", "snapshots", "time_limit")


def join_loaded(inspection: Inspection, loaded: typing.Iterable[dramatiq.Actor[..., Any]]) -> None:
    """Give the actors of the source their real options, and add those that it hides."""
    by_function = {(id(each.home), id(each.function)): each for each in inspection.actors}
    for real in loaded:
        module, function = _source_of(inspection, real)
        if module is None or function is None or not module.is_asked:
            continue
        actor = by_function.get((id(module), id(function)))
        if actor is None:
            place = function.decorator_list[0] if function.decorator_list else function
            actor = Actor(real.actor_name, module, function, place, {}, True, module)
            inspection.actors.append(actor)
        elif actor.name != real.actor_name:
            continue
        _take_options(actor, real)


def _take_options(actor: Actor, real: dramatiq.Actor[..., Any]) -> None:
    actor.loaded = real
    actor.is_complete = True
    for name in _PLACED:
        value = real.queue_name if name == "queue_name" else real.options.get(name)
        written = actor.options.get(name)
        if value is not None or written is not None:
            actor.options[name] = Option(value, None if written is None else written.node)


def _source_of(
    inspection: Inspection, real: dramatiq.Actor[..., Any]
) -> tuple[Module | None, ast.FunctionDef | ast.AsyncFunctionDef | None]:
    code = getattr(function_of(real), "__code__", None)
    module = inspection.project.at(Path(code.co_filename)) if code is not None else None
    if code is None or module is None:
        return None, None
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return module, node
    return module, None


def annotated_data(actor: Actor, parameter: str) -> str:
    """Return which kind of data a loaded actor's parameter is, in words; empty if none or not known."""
    if actor.loaded is None:
        return ""
    try:
        hints = typing.get_type_hints(function_of(actor.loaded))
    except Exception:  # whatever evaluating foreign annotations raises
        return ""
    return _data(hints.get(parameter), 0)


def _data(hint: Any, depth: int) -> str:
    if depth > 8 or hint is None or typing.get_origin(hint) is typing.Literal:
        return ""
    inner = (hint, typing.get_origin(hint))
    for each in inner:
        if isinstance(each, type):
            if issubclass(each, dict):
                return "a dict"
            if issubclass(each, bytes | bytearray | memoryview):
                return "bytes"
            if issubclass(each, datetime.datetime | datetime.date | datetime.time | datetime.timedelta):
                return f"a {each.__name__}"
            if dataclasses.is_dataclass(each):
                return f"a dataclass ({each.__name__})"
            if hasattr(each, "__mapper__") or hasattr(each, "__pydantic_validator__"):
                return f"a model ({each.__name__})"
    return next(filter(None, (_data(each, depth + 1) for each in typing.get_args(hint))), "")
