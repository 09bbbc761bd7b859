"""Where does a value come from? Written as the dotted expression that makes it.

`session = current_session()` makes `session` come from `middleware.current_session()`, whatever it is
imported as and through however many variables. A name that several places bind comes from each; `?` is what
cannot be told, and whoever asks for certainty takes no `?`.
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import Final

from .bindings import How
from .module import Function, Module
from .project import NOT_FOLLOWED, Place, Project, is_import

UNKNOWN: Final = "?"
NONE: Final = "None"
_ANYTHING: Final = frozenset({UNKNOWN})
_DEEP: Final = 24
_MANY: Final = 8
_PARTIAL: Final = re.compile(r"functools\.partial")
_CAST: Final = re.compile(r"typing\.cast")
_YIELDS: Final = re.compile(r"contextlib\.(async)?contextmanager")


class Origins:
    """Answers for one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[ast.AST, frozenset[str]] = {}
        self._asked: set[ast.AST] = set()
        self._results: dict[Function, ast.expr | None] = {}
        self.given: dict[ast.arg, frozenset[str]] = {}
        """Parameter → where the arguments come from, as far as it was found out."""

    def give(self, parameter: ast.arg, origin: str) -> None:
        """Note that a parameter is given something that comes from there."""
        self.given[parameter] = frozenset({origin})
        self._known.clear()

    def are(self, pattern: re.Pattern[str], expression: ast.AST | None, module: Module) -> bool:
        """Whether an expression certainly comes from something that a pattern describes in full."""
        found = self.of(expression, module) - {NONE}
        return bool(found) and all(pattern.fullmatch(each) for each in found)

    def of(self, expression: ast.AST | None, module: Module) -> frozenset[str]:
        """Return where an expression's value may come from."""
        if expression is None:
            return _ANYTHING
        if expression in self._known:
            return self._known[expression]
        if expression in self._asked or len(self._asked) > _DEEP:
            return _ANYTHING
        self._asked.add(expression)
        try:
            found = self._of(expression, module)
        finally:
            self._asked.discard(expression)
        if len(found) > _MANY:
            found = _ANYTHING
        if not self._asked:  # what was cut short by a circle or by depth is not kept
            self._known[expression] = found
        return found

    def _of(self, expression: ast.AST, module: Module) -> frozenset[str]:
        match expression:
            case ast.Constant(value=None):
                return frozenset({NONE})
            case ast.Name():
                return self._of_name(expression, module)
            case ast.Attribute():
                return self._with(self.of(expression.value, module), f".{expression.attr}", module)
            case ast.Call():
                return self._of_call(expression, module)
            case ast.Await() | ast.NamedExpr():
                return self.of(expression.value, module)
            case ast.Subscript():
                found = self.of(
                    expression.value, module
                )  # of a class it is the class: `sessionmaker[Session]`
                return frozenset(f"{each}[]" if "(" in each else each for each in found)
            case ast.IfExp():
                return self.of(expression.body, module) | self.of(expression.orelse, module)
            case ast.BoolOp():
                return frozenset().union(*(self.of(each, module) for each in expression.values))
            case _:
                return _ANYTHING

    def _with(self, origins: frozenset[str], ending: str, module: Module) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for each in origins:
            if each in {UNKNOWN, NONE}:
                found |= {UNKNOWN}
            else:
                found |= self.of_dotted(f"{each}{ending}", module)
        return found

    def _of_name(self, name: ast.Name, module: Module) -> frozenset[str]:
        places = self.project.seen_from(name.id, name, module)
        if not places:
            star = "" if hasattr(builtins, name.id) else self.project.star_of(module)
            return self.of_dotted(f"{star or 'builtins'}.{name.id}", module)
        return frozenset().union(*(self.of_place(each) for each in places))

    def of_place(self, place: Place) -> frozenset[str]:
        """Return where the value of a binding comes from."""
        binding, module = place
        match binding.how:
            case How.IMPORT:
                return self.of_dotted(binding.target, module)
            case How.VALUE | How.ENTERED:
                return self.of(binding.value, module)
            case How.DEFINITION:
                assert isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                return frozenset({self.project.qualified(binding.node, module)})
            case How.ANNOTATED:
                return self.of_parameter(place)
            case How.OPAQUE if isinstance(binding.node, ast.arg):
                return self.given.get(binding.node, _ANYTHING)
            case _:
                return _ANYTHING

    def of_parameter(self, place: Place) -> frozenset[str]:
        """Return an instance of what a parameter is annotated with, or what is known to be given to it."""
        binding, module = place
        if isinstance(binding.node, ast.arg) and binding.node in self.given:
            return self.given[binding.node]
        annotation = binding.value
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return _ANYTHING
        found = self.of(annotation, module)
        return frozenset(UNKNOWN if each in {UNKNOWN, NONE} else f"{each}()" for each in found)

    def of_dotted(self, dotted: str, module: Module) -> frozenset[str]:
        """Return what an absolute dotted name stands for, followed through the project's own modules."""
        head, _, rest = dotted.partition("(")
        if rest or head.partition(".")[0] in NOT_FOLLOWED or self.project.module(dotted, module) is not None:
            return frozenset({dotted})
        parts = head.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            source = ".".join(parts[:cut])
            if self.project.module(source, module) is None:
                continue
            places = self.project.find(f"{source}.{parts[cut]}", module)
            itself = [each for each in places if is_import(each) and each.binding.target == dotted]
            if not places or itself:
                return frozenset({dotted})
            if len(self._asked) > _DEEP:
                return _ANYTHING
            found: frozenset[str] = frozenset().union(*(self._followed(each) for each in places))
            tail = "".join(f".{each}" for each in parts[cut + 1 :])
            return frozenset(each if each in {UNKNOWN, NONE} else f"{each}{tail}" for each in found)
        return frozenset({dotted})

    def _followed(self, place: Place) -> frozenset[str]:
        if place.binding.node in self._asked:
            return _ANYTHING
        self._asked.add(place.binding.node)
        try:
            return self.of_place(place)
        finally:
            self._asked.discard(place.binding.node)

    def _of_call(self, call: ast.Call, module: Module) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for each in self.of(call.func, module):
            if each in {UNKNOWN, NONE}:
                found |= {UNKNOWN}
            elif _PARTIAL.fullmatch(each) and call.args:
                found |= self.of(call.args[0], module)  # what it is called with matters to nobody
            elif _CAST.fullmatch(each) and len(call.args) == 2:
                found |= self.of(call.args[1], module)
            else:
                found |= self._returned(each)
        return found

    def _returned(self, function: str) -> frozenset[str]:
        """Return what a call of a function gives: its one returned or yielded value, where it has one."""
        defined = self.project.definition(function)
        if defined is None or isinstance(defined[0], ast.ClassDef):
            return frozenset({f"{function}()"})
        node, module = defined[0], defined[1]
        value = self.result_of(node, module)
        inner = _ANYTHING if value is None else self.of(value, module)
        return frozenset({f"{function}()"}) if UNKNOWN in inner else inner

    def result_of(self, function: Function, module: Module) -> ast.expr | None:
        """Return the expression that a function returns, or a context manager yields, if there is one."""
        if function not in self._results:
            self._results[function] = self._result_of(function, module)
        return self._results[function]

    def _result_of(self, function: Function, module: Module) -> ast.expr | None:
        kinds = (ast.Yield, ast.YieldFrom, ast.Return)
        ends = [each for each in ast.walk(function) if isinstance(each, kinds)]
        own = [each for each in ends if module.function_around(each) is function]
        yields = [each for each in own if isinstance(each, ast.Yield | ast.YieldFrom)]
        returns = [each for each in own if isinstance(each, ast.Return) and each.value is not None]
        if yields:
            is_manager = any(self.are(_YIELDS, each, module) for each in function.decorator_list)
            return yields[0].value if is_manager and len(yields) == 1 else None
        return returns[0].value if len(returns) == 1 and not function.decorator_list else None
