"""Is what a function does, all of it, inside one block? Then whatever ends there is the whole job's end."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .inspection import Inspection
from .kinds import GIVEN, SESSION
from .module import Function, Module


def holds_all_work(
    block: ast.AST, function: Function, module: Module, says: Callable[[ast.Call], bool]
) -> bool:
    """Whether nothing with an effect stands beside a block, on any level up to the function.

    Parameters:
        block: a `try` or a `with` in the function.
        function: what it is in.
        module: where.
        says: tells calls that only tell somebody.
    """
    inner: ast.AST = block
    for outer in module.around(block):
        if any(_is_work(each, says) for each in _statements(outer) if each is not inner):
            return False
        if outer is function:
            return True
        inner = outer
    return False


def touches_session(inspection: Inspection, block: list[ast.stmt], module: Module) -> bool:
    """Whether statements use a session, other than in a savepoint: its errors end the transaction."""
    calls = [node for each in block for node in ast.walk(each) if isinstance(node, ast.Call)]
    methods = [each.func for each in calls if isinstance(each.func, ast.Attribute)]
    if any(each.attr == "begin_nested" for each in methods):
        return False
    used = [each.value for each in methods] + [argument for each in calls for argument in each.args]
    return any(
        inspection.origins.are(kind, each, module)
        for each in used
        if isinstance(each, ast.Name | ast.Call | ast.Attribute)
        for kind in (SESSION, GIVEN)
    )


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from block


def _is_work(statement: ast.stmt, says: Callable[[ast.Call], bool]) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()) | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return False
        case ast.Expr(value=ast.Call() as call):
            return not says(call)
        case ast.Expr() | ast.AugAssign() | ast.Delete():
            return True
        case ast.Assign():
            return not all(isinstance(each, ast.Name | ast.Tuple | ast.List) for each in statement.targets)
        case ast.AnnAssign():
            return not isinstance(statement.target, ast.Name)
        case ast.Return():
            return any(isinstance(each, ast.Call | ast.Await) for each in ast.walk(statement))
        case _:
            return any(_is_work(each, says) for each in _statements(statement)) or any(
                _is_work(each, says) for part in getattr(statement, "handlers", []) for each in part.body
            )
