"""Which actors does a project declare, with which options, by whatever spelling?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .constants import UNKNOWN, Constants
from .kinds import ACTOR
from .module import Function, Module
from .origins import Origins
from .wrappers import declaring_call, default_of

_PARTIAL: Final = re.compile(r"functools\.partial")
_DEEP: Final = 6


class Option(NamedTuple):
    """An option of an actor.

    Attributes:
        value: `UNKNOWN` if the source does not decide it.
        node: where it is written in the actor's own module; None if that is elsewhere.
    """

    value: Any
    node: ast.AST | None = None


@dataclass(slots=True)
class Actor:
    """A declared actor.

    Attributes:
        name: its name.
        module: where it is declared.
        function: what it runs.
        place: its declaration.
        options: as they are written, or as the loaded application has them.
        is_complete: nothing adds options that the source does not show.
        home: the function's module.
        loaded: Dramatiq's actor, where the application was loaded.
    """

    name: str
    module: Module
    function: Function
    place: ast.AST
    options: dict[str, Option]
    is_complete: bool
    home: Module
    loaded: Any = field(default=None)

    def option(self, name: str) -> Any:
        """Return an option's value, None if it has none, `UNKNOWN` if that cannot be told."""
        if name in self.options:
            return self.options[name].value
        return None if self.is_complete else UNKNOWN

    @property
    def has_session(self) -> bool:
        """Whether it certainly runs in the ledger's transaction, whose session it is given."""
        key, effect = self.option("idempotency_key"), self.option("effect")
        return key is not None and key is not UNKNOWN and effect in (None, "database")

    def written(self, name: str) -> ast.AST:
        """Return where an option is written, or else the declaration."""
        option = self.options.get(name)
        is_inside = option is not None and option.node is not None and _is_part(option.node, self.place)
        return option.node if option is not None and option.node is not None and is_inside else self.place

    @property
    def parameters(self) -> list[ast.arg]:
        """The function's parameters, those for one argument each."""
        arguments = self.function.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    @property
    def parameter_names(self) -> list[str]:
        """Their names."""
        return [each.arg for each in self.parameters]

    @property
    def is_wrapped(self) -> bool:
        """Whether decorators stand between the actor and its function, which may change what it takes."""
        decorators: list[ast.AST] = [*self.function.decorator_list]
        below = decorators[decorators.index(self.place) + 1 :] if self.place in decorators else decorators
        return bool(below)

    @property
    def last_header_line(self) -> int:
        """The line above the body's first, where the declaration is a decorator."""
        if self.home is not self.module or self.place.lineno > self.function.lineno:  # type: ignore[attr-defined]
            return getattr(self.place, "end_lineno", 0) or 0
        return max(self.function.lineno, self.function.body[0].lineno - 1)


class _Options(NamedTuple):
    found: dict[str, Option]
    is_complete: bool


class Actors:
    """Finds the actors of a project."""

    def __init__(self, origins: Origins, constants: Constants) -> None:
        self._origins = origins
        self._constants = constants

    def of(self, module: Module) -> Iterator[Actor]:
        """Yield the actors that a module declares."""
        if "actor" not in module.text and "dramatiq" not in module.text and "import" not in module.text:
            return
        decorators = set()
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                decorators.update(node.decorator_list)
                yield from self._decorated(node, module)
        for node in module.nodes:
            if isinstance(node, ast.Call) and node not in decorators:
                yield from self._called(node, module)

    def _decorated(self, function: Function, module: Module) -> Iterator[Actor]:
        for decorator in function.decorator_list:
            options = self._declaration(decorator, module, module)
            if options is not None:
                yield self._actor(function, module, decorator, options, module)
                return

    def _called(self, call: ast.Call, module: Module) -> Iterator[Actor]:
        """`actor(function, …)` and `actor(…)(function)`."""
        if not call.args:
            return
        if self._origins.are(ACTOR, call.func, module):
            options: _Options | None = self._keywords(call, module, module)
        elif isinstance(call.func, ast.Call | ast.Name | ast.Attribute):
            options = self._declaration(call.func, module, module)
        else:
            return
        function, home = self._constants.source(call.args[0], module)
        if function is call.args[0] and isinstance(function, ast.Name):
            function, home = self._definition_before(function, module)
        if options is not None and isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield self._actor(function, module, call, options, home)

    def _definition_before(self, name: ast.Name, module: Module) -> tuple[ast.AST, Module]:
        """`welcome = actor(welcome)`: the name stands for the function until this very statement."""
        for binding, home in self._origins.project.seen_from(name.id, name, module):
            if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
                return binding.node, home
        return name, module

    def _actor(
        self, function: Function, module: Module, place: ast.AST, options: _Options, home: Module
    ) -> Actor:
        name = options.found.get("actor_name", Option(None)).value
        return Actor(
            name if isinstance(name, str) else function.name,
            module,
            function,
            place,
            options.found,
            options.is_complete,
            home,
        )

    def _declaration(
        self, expression: ast.AST, module: Module, own: Module, depth: int = 0
    ) -> _Options | None:
        """Return the options with which an expression, used as a decorator, declares an actor."""
        if depth > _DEEP or not isinstance(expression, ast.expr):
            return None
        if self._origins.are(ACTOR, expression, module) and not isinstance(expression, ast.Call):
            return _Options({}, True)
        source, home = self._constants.source(expression, module)
        if isinstance(source, ast.FunctionDef | ast.AsyncFunctionDef):
            result = declaring_call(self._origins, self._constants, source, home, is_called=False)
            return None if result is None else self._keywords(result, home, own)
        if not isinstance(source, ast.Call):
            return None
        inner = source.args[0] if source.args else None
        if self._origins.are(_PARTIAL, source.func, home):
            base = self._declaration(inner, home, own, depth + 1) if inner is not None else None
            return None if base is None else _joined(base, self._keywords(source, home, own))
        if self._origins.are(ACTOR, source.func, home):
            base = self._declaration(source.func, home, own, depth + 1)
            # A name for `partial(actor, …)` comes from the actor as well, and brings options of its own.
            return _joined(base or _Options({}, True), self._keywords(source, home, own))
        return self._by_wrapper(source, home, own)

    def _by_wrapper(self, call: ast.Call, module: Module, own: Module) -> _Options | None:
        """`def job(**options): return dramatiq.actor(queue_name="critical", **options)`."""
        function, home = self._constants.source(call.func, module)
        if not isinstance(function, ast.FunctionDef):
            return None
        result = declaring_call(self._origins, self._constants, function, home, is_called=True)
        if result is None:
            return None
        given = self._keywords(call, module, own)
        for parameter, value in zip(function.args.args, call.args, strict=False):
            given.found[parameter.arg] = Option(self._constants.value(value, module))
        names = {each.arg for each in [*function.args.args, *function.args.kwonlyargs]}
        passed = function.args.kwarg.arg if function.args.kwarg else ""
        plain = [
            each for each in result.keywords if each.arg is not None or not _is_name(each.value, {passed})
        ]
        base = self._keywords(ast.Call(result.func, [], plain), home, own)
        for keyword in plain:  # `queue_name=queue`: what the wrapper itself was given
            if keyword.arg and isinstance(keyword.value, ast.Name) and keyword.value.id in names:
                base.found[keyword.arg] = self._given(given, function, keyword.value.id, home)
        rest = {name: option for name, option in given.found.items() if name not in names}
        takes_rest = len(plain) < len(result.keywords)
        return _joined(base, _Options(rest if takes_rest else {}, given.is_complete))

    def _given(self, given: _Options, function: Function, name: str, home: Module) -> Option:
        default = default_of(function, name)
        if name in given.found or default is None or not given.is_complete:
            return given.found.get(name, Option(UNKNOWN))
        return Option(self._constants.value(default, home))

    def _keywords(self, call: ast.Call, module: Module, own: Module) -> _Options:
        found: dict[str, Option] = {}
        is_complete = True
        for keyword in call.keywords:
            value = self._constants.value(keyword.value, module)
            if keyword.arg is not None:
                found[keyword.arg] = Option(value, keyword if module is own else None)
            elif isinstance(value, dict):
                found |= {name: Option(each) for name, each in value.items() if isinstance(name, str)}
            else:
                is_complete = False
        return _Options(found, is_complete)


def _is_name(expression: ast.expr, names: set[str]) -> bool:
    return isinstance(expression, ast.Name) and expression.id in names


def _is_part(node: ast.AST, whole: ast.AST) -> bool:
    return any(each is node for each in ast.walk(whole))


def _joined(base: _Options, more: _Options) -> _Options:
    return _Options(base.found | more.found, base.is_complete and more.is_complete)
