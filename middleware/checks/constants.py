"""Which value does an expression have, as far as the source alone decides it?"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from .bindings import How
from .module import Module
from .origins import Origins
from .project import Place


class Unknown:
    """What cannot be told from the source."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
_DEEP: Final = 20
_OPERATORS: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.BitOr: operator.or_,
}


class Constants:
    """Answers for one project."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def source(self, expression: ast.expr, module: Module, depth: int = 0) -> tuple[ast.AST, Module]:
        """Return what a name is bound to in just one place, followed to its end; others as they are."""
        places = self._places(expression, module)
        if len(places) != 1 or depth > _DEEP:
            return expression, module
        binding, its_module = places[0]
        if binding.how is How.DEFINITION:
            return binding.node, its_module
        if binding.how is How.IMPORT:
            return self._follow(binding.target, its_module, expression, module, depth)
        if binding.how is How.VALUE and binding.value is not None:
            return self.source(binding.value, its_module, depth + 1)
        return expression, module

    def _follow(
        self, dotted: str, importer: Module, expression: ast.expr, module: Module, depth: int
    ) -> tuple[ast.AST, Module]:
        for _ in range(_DEEP):
            places = self._origins.project.find(dotted, importer)
            if len(places) != 1:
                return expression, module
            binding, importer = places[0]
            if binding.how is How.DEFINITION:
                return binding.node, importer
            if binding.how is How.VALUE and binding.value is not None:
                return self.source(binding.value, importer, depth + 1)
            if binding.how is not How.IMPORT:
                return expression, module
            dotted = binding.target
        return expression, module

    def _places(self, expression: ast.expr, module: Module) -> list[Place]:
        project = self._origins.project
        if isinstance(expression, ast.Name):
            return project.seen_from(expression.id, expression, module)
        if isinstance(expression, ast.Attribute):
            origins = self._origins.of(expression.value, module)
            if len(origins) == 1:
                return project.find(f"{next(iter(origins))}.{expression.attr}", module)
        return []

    def value(self, expression: ast.expr, module: Module, depth: int = 0) -> Any:
        """Return an expression's value, `UNKNOWN` if the source does not decide it."""
        if depth > _DEEP:
            return UNKNOWN
        try:
            return self._value(expression, module, depth + 1)
        except (TypeError, ValueError, ArithmeticError):
            return UNKNOWN

    def _value(self, expression: ast.expr, module: Module, depth: int) -> Any:
        match expression:
            case ast.Constant():
                return expression.value
            case ast.Tuple() | ast.List() | ast.Set():
                items = [self.value(each, module, depth) for each in expression.elts]
                return UNKNOWN if UNKNOWN in items else tuple(items)
            case ast.Dict():
                return self._dictionary(expression, module, depth)
            case ast.UnaryOp(op=ast.USub()):
                value = self.value(expression.operand, module, depth)
                return value if value is UNKNOWN else -value
            case ast.BinOp():
                return self._operation(expression, module, depth)
            case ast.JoinedStr():
                return self._text(expression, module, depth)
            case ast.Call():
                return self._call(expression, module, depth)
            case ast.Name() | ast.Attribute():
                source, its_module = self.source(expression, module)
                is_end = source is expression or not isinstance(source, ast.expr)
                return UNKNOWN if is_end else self.value(source, its_module, depth)  # type: ignore[arg-type]
            case _:
                return UNKNOWN

    def _dictionary(self, expression: ast.Dict, module: Module, depth: int) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(expression.keys, expression.values, strict=True):
            its_value = self.value(value, module, depth)
            if key is None:
                if not isinstance(its_value, dict):
                    return UNKNOWN
                found |= its_value
            else:
                found[self.value(key, module, depth)] = its_value
        return UNKNOWN if UNKNOWN in found else found

    def _operation(self, expression: ast.BinOp, module: Module, depth: int) -> Any:
        function = _OPERATORS.get(type(expression.op))
        left, right = (self.value(each, module, depth) for each in (expression.left, expression.right))
        if function is None or left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if isinstance(expression.op, ast.Mult) and not _is_small(left, right):
            return UNKNOWN
        return function(left, right)

    def _text(self, expression: ast.JoinedStr, module: Module, depth: int) -> Any:
        parts = []
        for each in expression.values:
            if isinstance(each, ast.FormattedValue):
                value = self.value(each.value, module, depth)
                if value is UNKNOWN or each.format_spec is not None or each.conversion != -1:
                    return UNKNOWN
                parts.append(str(value))
            else:
                parts.append(str(self.value(each, module, depth)))
        return "".join(parts)

    def _call(self, call: ast.Call, module: Module, depth: int) -> Any:
        arguments = [self.value(each, module, depth) for each in call.args]
        named = {each.arg or "**": self.value(each.value, module, depth) for each in call.keywords}
        if any(each is UNKNOWN for each in (*arguments, *named.values())):
            return UNKNOWN
        origins = self._origins.of(call.func, module)
        if origins == {"datetime.timedelta"}:
            return timedelta(*arguments, **named)
        if origins == {"builtins.dict"} and not arguments:
            return named.pop("**", {}) | named
        if origins & {"builtins.tuple", "builtins.list", "builtins.frozenset", "builtins.set"} and arguments:
            return tuple(arguments[0])
        if origins & {"builtins.int", "builtins.round"} and len(arguments) == 1:
            return int(arguments[0])
        if isinstance(call.func, ast.Attribute) and call.func.attr == "total_seconds":
            length = self.value(call.func.value, module, depth)
            return length.total_seconds() if isinstance(length, timedelta) else UNKNOWN
        return UNKNOWN


def _is_small(left: Any, right: Any) -> bool:
    """Whether a product stays small: `"x" * 10**9` is not worked out."""
    kinds = int | float | timedelta
    return isinstance(left, kinds) and isinstance(right, kinds)
