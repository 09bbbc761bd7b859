"""JOB104: does anybody end the transaction that is the kit's to end?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ..constants import UNKNOWN
from ..finding import Finding
from ..inspection import Inspection, finding
from ..kinds import GIVEN, GIVEN_SESSION, SQL_END
from ..module import Function, Module
from ..origins import NONE
from ..writes import EXECUTE, sql_of

_REFUSED: Final = {"commit", "rollback", "close", "reset", "invalidate", "prepare", "begin"}
_SOURCES: Final = ("current_session", "current_async_session", "effect", "import *", "middleware")
_PLAIN: Final = {"commit", "rollback"}
_FIX: Final = (
    "remove it: return and the kit commits, raise and it rolls back; to undo a part, use "
    "`with session.begin_nested():`"
)


def check_transactions(inspection: Inspection) -> Iterator[Finding]:
    """Yield calls that would end a ledger transaction, in actors and in functions that get its session."""
    if not any(name in module.text for module in inspection.project.modules for name in _SOURCES):
        return
    given = _follow_parameters(inspection)
    for module in inspection.project.modules:
        for node in module.nodes:
            if not isinstance(node, ast.Call):
                continue
            call = _refused(inspection, node, module)
            if not call:
                continue
            function = module.function_around(node)
            if (
                function is not None
                and _rests_on(node.func, function, given)
                and not _always_runs(node, function, module)
            ):
                continue
            yield finding(
                "JOB104",
                node,
                module,
                f"{call}() is called on the session that the kit gave to the actor, which refuses it: effect "
                "and key would not be one commit",
                _FIX,
            )


def _refused(inspection: Inspection, call: ast.Call, module: Module) -> str:
    """Return the name of a call that the session refuses; empty for any other."""
    if not isinstance(call.func, ast.Attribute | ast.Name):
        return ""
    names = set()
    for origin in inspection.origins.of(call.func, module) - {NONE}:
        receiver, _, name = origin.rpartition(".")
        is_refused = bool(name in _PLAIN and GIVEN.fullmatch(receiver)) or bool(
            name in _REFUSED and GIVEN_SESSION.fullmatch(receiver)
        )
        if name in EXECUTE and call.args and GIVEN.fullmatch(receiver):
            is_refused = bool(SQL_END.match(sql_of(inspection, call.args[0], module)))
        if not is_refused or (name == "begin" and _is_savepoint(inspection, call, module)):
            return ""
        names.add(name)
    return " or ".join(sorted(names))


def _is_savepoint(inspection: Inspection, call: ast.Call, module: Module) -> bool:
    """Whether it is, or may be, `session.begin(nested=True)`."""
    values = [*call.args, *(each.value for each in call.keywords)]
    known = [inspection.constants.value(each, module) for each in values]
    return any(each is UNKNOWN or each for each in known)


def _follow_parameters(inspection: Inspection) -> dict[str, list[ast.arg]]:
    """Find the parameters that are only ever given a ledger session; name → parameters."""
    origins = inspection.origins
    calls = [
        (node, module)
        for module in inspection.project.modules
        for node in module.nodes
        if isinstance(node, ast.Call) and (node.args or node.keywords)
    ]
    found: dict[str, list[ast.arg]] = {}
    for _ in range(4):  # from the actor to a function, and on to those that this one calls
        news = []
        for call, module in calls:
            handed = [
                each
                for each in [*call.args, *(each.value for each in call.keywords)]
                if _is_given(inspection, each, module)
            ]
            called = inspection.called(call, module) if handed else None
            if called is not None:
                news += [each for each in _parameters(call, called[0], handed) if each not in origins.given]
        if not news:
            break
        for parameter in news:
            origins.give(parameter, "middleware.current_session()")
            found.setdefault(parameter.arg, []).append(parameter)
    return found


def _is_given(inspection: Inspection, expression: ast.expr, module: Module) -> bool:
    return isinstance(expression, ast.Name | ast.Call | ast.Attribute | ast.Await) and inspection.origins.are(
        GIVEN_SESSION, expression, module
    )


def _parameters(call: ast.Call, function: Function, handed: list[ast.expr]) -> list[ast.arg]:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    by_name = {each.arg: each for each in [*plain, *arguments.kwonlyargs]}
    found = [parameter for parameter, value in zip(plain, call.args, strict=False) if value in handed]
    found += [by_name[each.arg] for each in call.keywords if each.arg in by_name and each.value in handed]
    return found


def _rests_on(receiver: ast.expr, function: Function, given: dict[str, list[ast.arg]]) -> bool:
    """Whether a receiver is the parameter of a function that others may call with a session of their own."""
    arguments = function.args
    own = {*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs}
    known = {each.arg for parameters in given.values() for each in parameters if each in own}
    return bool(known) and not any(isinstance(each, ast.Call) for each in ast.walk(receiver))


def _always_runs(node: ast.AST, function: Function, module: Module) -> bool:
    """Whether a call is made by every run of a function that does not fail before."""
    inner = node
    for outer in module.around(node):
        if outer is function:
            return True
        is_sure = isinstance(outer, ast.With | ast.AsyncWith | ast.expr) or (
            isinstance(outer, ast.Try) and (inner in outer.body or inner in outer.finalbody)
        )
        if (
            isinstance(outer, ast.stmt)
            and not is_sure
            and not isinstance(outer, ast.Expr | ast.Assign | ast.Return)
        ):
            return False
        if isinstance(outer, ast.IfExp | ast.BoolOp | ast.Lambda | ast.ExceptHandler):
            return False
        inner = outer
    return False
