"""Which call declares the actor, where a project has a decorator of its own around `dramatiq.actor`?"""

from __future__ import annotations

import ast

from .constants import Constants
from .kinds import ACTOR
from .module import Function, Module
from .origins import Origins


def declaring_call(
    origins: Origins, constants: Constants, function: Function, module: Module, *, is_called: bool
) -> ast.Call | None:
    """Return the call of `dramatiq.actor` whose keywords a decorator's actors get, None if it is none.

    Parameters:
        origins: of the project.
        constants: of the project.
        function: the project's decorator.
        module: its module.
        is_called: it is used as `@job(…)`, and so returns a decorator; otherwise as `@job`.
    """
    result = origins.result_of(function, module)
    if not is_called:
        return _of_function(origins, function, result, module)
    if isinstance(result, ast.Call) and origins.are(ACTOR, result.func, module) and not result.args:
        return result
    inner = constants.source(result, module)[0] if isinstance(result, ast.Name) else None
    if not isinstance(inner, ast.FunctionDef):
        return None
    return _of_function(origins, inner, origins.result_of(inner, module), module)


def _of_function(
    origins: Origins, decorator: Function, result: ast.expr | None, module: Module
) -> ast.Call | None:
    """`actor(function, …)` or `actor(…)(function)`, of the decorator's own parameter."""
    arguments = decorator.args.args
    if not isinstance(result, ast.Call) or len(result.args) != 1 or not arguments:
        return None
    passed = result.args[0]
    if not isinstance(passed, ast.Name) or passed.id != arguments[0].arg:
        return None
    if origins.are(ACTOR, result.func, module) and not isinstance(result.func, ast.Call):
        return result
    inner = result.func
    if isinstance(inner, ast.Call) and origins.are(ACTOR, inner.func, module):
        return inner
    return None


def default_of(function: Function, name: str) -> ast.expr | None:
    """Return the default of a parameter, None if it has none."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip([each.arg for each in plain][::-1], arguments.defaults[::-1], strict=False))
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[parameter.arg] = default
    return defaults.get(name)
