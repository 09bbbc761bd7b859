"""Which names does a module bind, where, and to what?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from .module import Module

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES: Final = (ast.Module, ast.ClassDef, *_FUNCTIONS, *_COMPREHENSIONS)


class How(Enum):
    """In which way a name got its value."""

    IMPORT = auto()
    VALUE = auto()
    ENTERED = auto()
    """By `with value as name`."""
    ANNOTATED = auto()
    """A parameter or a variable of which only the type is known."""
    DEFINITION = auto()
    OPAQUE = auto()
    """In a way that is not followed."""


class Binding(NamedTuple):
    """One place that binds a name.

    Attributes:
        how: in which way.
        node: the place.
        value: the expression it is bound to, for ANNOTATED the annotation; None where there is none.
        target: for an import, the absolute dotted name.
    """

    how: How
    node: ast.AST
    value: ast.expr | None = None
    target: str = ""


class Bindings:
    """All bindings of a module.

    Attributes:
        stars: modules of which every name is imported.
        definitions: dotted name within the module → function or class.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._by_scope: dict[ast.AST, dict[str, list[Binding]]] = {}
        self.stars: list[str] = []
        self.definitions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = {}
        for node in module.nodes:
            self._bind_node(node)

    def of_module(self, name: str) -> list[Binding]:
        """Return where the module itself binds a name."""
        return self._last(self._by_scope.get(self._module.tree, {}).get(name, []), self._module.tree)

    def of_class(self, dotted: str, name: str) -> list[Binding]:
        """Return where a class of the module binds a name."""
        node = self.definitions.get(dotted)
        return self._by_scope.get(node, {}).get(name, []) if isinstance(node, ast.ClassDef) else []

    def seen_from(self, name: str, node: ast.AST) -> list[Binding]:
        """Return the bindings that a name may have at a place, none if nothing in the module binds it."""
        for scope in self.scopes_of(node):
            found = self._by_scope.get(scope, {}).get(name)
            if found:
                is_own = scope is next(self._frames_of(node), None) or isinstance(scope, _COMPREHENSIONS)
                return self._reaching(found, node) if is_own else self._last(found, scope)
        return []

    def _frames_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the scopes of a place that are not comprehensions, which run where they stand."""
        return (each for each in self.scopes_of(node) if not isinstance(each, _COMPREHENSIONS))

    def scopes_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the scopes in which a place looks names up, from the inside out."""
        inner, is_nested = node, False
        for outer in self._module.around(node):
            if isinstance(outer, _SCOPES) and _is_inside(outer, inner):
                if not (is_nested and isinstance(outer, ast.ClassDef)):
                    yield outer
                is_nested = is_nested or isinstance(outer, _FUNCTIONS)
            inner = outer

    def qualified(self, node: ast.AST) -> str:
        """Return a function's or class's dotted name within the module."""
        parts = [getattr(node, "name", "")]
        parts += [
            each.name
            for each in self._module.around(node)
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        return ".".join(reversed(parts))

    def _reaching(self, found: list[Binding], node: ast.AST) -> list[Binding]:
        """Leave out the bindings that another one, on every way to the place, has replaced."""
        if len(found) == 1:
            return found
        around = [node, *self._module.around(node)]
        earlier = [
            each
            for each in found
            if _starts(each.node) < _starts(node)
            and not (
                each.node in around and isinstance(each.node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            )
        ]
        certain = [each for each in earlier if self._is_certain(each, around)]
        if not certain:
            return found
        last = max(certain, key=lambda each: _starts(each.node))
        loops = [each for each in around if isinstance(each, ast.For | ast.While | ast.AsyncFor)]
        return [
            each
            for each in found
            if each is last
            or (each in earlier and _starts(each.node) > _starts(last.node))
            or any(loop in self._module.around(each.node) for loop in loops)
        ]

    def _last(self, found: list[Binding], scope: ast.AST) -> list[Binding]:
        """Leave out what is replaced before a function that sees it from outside can run."""
        body = getattr(scope, "body", [])
        certain = [each for each in found if isinstance(body, list) and each.node in body]
        if not certain:
            return found
        last = max(certain, key=lambda each: _starts(each.node))
        return [each for each in found if each is last or _starts(each.node) > _starts(last.node)]

    def _is_certain(self, binding: Binding, around: list[ast.AST]) -> bool:
        """Whether the binding's statement stands in a block that leads to the place."""
        statement: ast.AST = binding.node
        while not isinstance(statement, ast.stmt):
            outer = self._module.parent(statement)
            if outer is None:
                return False
            statement = outer
        block_of = self._module.parent(statement)
        if statement in around:  # `with a as name:` binds what its own body sees
            return True
        for name in ("body", "orelse", "finalbody"):
            block = getattr(block_of, name, None)
            if isinstance(block, list) and statement in block and any(each in block for each in around):
                return True
        return False

    # --- collecting ---

    def _add(self, name: str, binding: Binding, *, at: ast.AST | None = None) -> None:
        place = binding.node if at is None else at
        scope = next(self.scopes_of(place), None)
        while isinstance(scope, _COMPREHENSIONS) and isinstance(place, ast.NamedExpr):
            scope = next(self.scopes_of(scope), None)  # `:=` binds in the function around
        if scope is not None:
            self._by_scope.setdefault(scope, {}).setdefault(name, []).append(binding)

    def _bind_node(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._bind_import(node)
            case ast.Assign():
                for target in node.targets:
                    self._bind_target(target, node.value, node)
            case ast.AnnAssign(target=ast.Name(id=name)):
                how = How.ANNOTATED if node.value is None else How.VALUE
                self._add(name, Binding(how, node, node.value or node.annotation))
            case ast.NamedExpr(target=ast.Name(id=name)):
                self._add(name, Binding(How.VALUE, node, node.value))
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._bind_entered(item, node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.definitions[self.qualified(node)] = node
                self._add(node.name, Binding(How.DEFINITION, node))
                if not isinstance(node, ast.ClassDef):
                    self._bind_parameters(node)
            case ast.Lambda():
                self._bind_parameters(node)
            case ast.AugAssign() | ast.For() | ast.AsyncFor() | ast.comprehension():
                self._bind_target(node.target, None, node)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                self._add(name, Binding(How.OPAQUE, node))
            case ast.MatchMapping(rest=str(name)):
                self._add(name, Binding(How.OPAQUE, node))
            case ast.Global():
                for name in node.names:
                    self._bind_global(name, node)
            case _:
                pass

    def _bind_target(self, target: ast.expr, value: ast.expr | None, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            how = How.OPAQUE if value is None else How.VALUE
            # A comprehension's name belongs to the comprehension, whose child it is.
            at = target if isinstance(node, ast.comprehension) else None
            self._add(target.id, Binding(how, node, value), at=at)
        elif isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            is_plain = not any(isinstance(each, ast.Starred) for each in target.elts)
            if is_plain and isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(values):
                values = [None if isinstance(each, ast.Starred) else each for each in value.elts]
            for part, its_value in zip(target.elts, values, strict=True):
                self._bind_target(part, its_value, node)
        elif isinstance(target, ast.Starred):
            self._bind_target(target.value, None, node)

    def _bind_entered(self, item: ast.withitem, node: ast.AST) -> None:
        if isinstance(item.optional_vars, ast.Name):
            self._add(item.optional_vars.id, Binding(How.ENTERED, node, item.context_expr))
        elif item.optional_vars is not None:
            self._bind_target(item.optional_vars, None, node)

    def _bind_parameters(self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = function.args
        inside = self._by_scope.setdefault(function, {})
        for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            how = How.OPAQUE if each.annotation is None else How.ANNOTATED
            inside.setdefault(each.arg, []).append(Binding(how, each, each.annotation))
        for variadic in (arguments.vararg, arguments.kwarg):
            if variadic is not None:
                inside.setdefault(variadic.arg, []).append(Binding(How.OPAQUE, variadic))

    def _bind_global(self, name: str, node: ast.Global) -> None:
        """What a function assigns to the module's name is not followed."""
        at_top = self._by_scope.setdefault(self._module.tree, {})
        at_top.setdefault(name, []).append(Binding(How.OPAQUE, node))

    def _bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else bound
                self._add(bound, Binding(How.IMPORT, node, target=target))
            return
        source = absolute(self._module, node)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                bound, target = alias.asname or alias.name, f"{source}.{alias.name}"
                self._add(bound, Binding(How.IMPORT, node, target=target))


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """Return the absolute name of what a module imports from."""
    if not node.level:
        return node.module or ""
    parts = module.package.split(".") if module.package else []
    start = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
    return ".".join([*start, *([node.module] if node.module else [])])


def _is_inside(scope: ast.AST, child: ast.AST) -> bool:
    """Whether a direct child of a scope looks its names up inside: decorators and defaults do not."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return child in scope.body
    if isinstance(scope, ast.Lambda):
        return child is scope.body
    return True


def _starts(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
