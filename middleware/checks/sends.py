"""Who sends jobs to which actor, and with which arguments?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .actors import Actor
from .inspection import Inspection
from .module import Module

_PLAIN: Final = {"send", "message"}
_WITH_OPTIONS: Final = {"send_with_options", "message_with_options"}
_ASYNC: Final = re.compile(r"middleware(?:\.\w+)*\.(?P<name>send_async|send_with_options_async)")


@dataclass(frozen=True, slots=True)
class Send:
    """A call that makes a job.

    Attributes:
        actor: whose.
        call: the call.
        module: where.
        arguments: expression by parameter, as far as the source shows it.
        is_message: it makes the message only.
    """

    actor: Actor
    call: ast.Call
    module: Module
    arguments: dict[str, ast.expr]
    is_message: bool


def sends(inspection: Inspection) -> Iterator[Send]:
    """Yield the sends in the modules to check."""
    for module in inspection.project.modules:
        if "send" not in module.text and "message" not in module.text:
            continue
        for node in module.nodes:
            if isinstance(node, ast.Call):
                send = read_send(inspection, node, module)
                if send is not None:
                    yield send


def read_send(inspection: Inspection, call: ast.Call, module: Module) -> Send | None:
    """Return a call as a send, None if it is not certainly one."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _PLAIN | _WITH_OPTIONS:
        actor = inspection.actor(call.func.value, module)
        if actor is None:
            return None
        is_plain, positional = call.func.attr in _PLAIN, call.args
        is_message = call.func.attr.startswith("message")
    else:
        names = [_ASYNC.fullmatch(each) for each in inspection.origins.of(call.func, module)]
        if len(names) != 1 or names[0] is None or not call.args:
            return None
        actor = inspection.actor(call.args[0], module)
        is_plain, positional, is_message = names[0]["name"] == "send_async", call.args[1:], False
    if actor is None:
        return None
    arguments = (
        _bind(actor, positional, call.keywords)
        if is_plain
        else _bind_options(inspection, actor, call, module)
    )
    return Send(actor, call, module, arguments, is_message)


def _bind(actor: Actor, positional: list[ast.expr], keywords: list[ast.keyword]) -> dict[str, ast.expr]:
    return by_position(actor, positional) | {each.arg: each.value for each in keywords if each.arg}


def by_position(actor: Actor, positional: list[ast.expr]) -> dict[str, ast.expr]:
    """Return arguments by parameter, up to the first `*arguments`."""
    arguments = actor.function.args
    names = [each.arg for each in [*arguments.posonlyargs, *arguments.args]]
    found = {}
    for name, value in zip(names, positional, strict=False):
        if isinstance(value, ast.Starred):
            break
        found[name] = value
    return found


def _bind_options(
    inspection: Inspection, actor: Actor, call: ast.Call, module: Module
) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        value, home = inspection.constants.source(keyword.value, module)
        if home is not module:
            continue
        if keyword.arg == "args" and isinstance(value, ast.Tuple | ast.List):
            found |= by_position(actor, value.elts)
        elif keyword.arg == "kwargs" and isinstance(value, ast.Dict):
            found |= {
                key.value: item
                for key, item in zip(value.keys, value.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
        elif keyword.arg == "kwargs" and isinstance(value, ast.Call):
            is_dict = inspection.origins.of(value.func, module) == {"builtins.dict"}
            if is_dict:
                found |= {each.arg: each.value for each in value.keywords if each.arg}
    return found
