"""What every rule works with: the project's modules, actors, functions, and where values come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .actors import Actor, Actors
from .constants import Constants
from .finding import Finding
from .module import Function, Module
from .origins import Origins
from .project import Project, is_import


class Inspection:
    """One project, ready to be asked.

    Attributes:
        project: its modules.
        origins: where values come from.
        constants: what values are.
        actors: those that the modules to check declare.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.origins = Origins(project)
        self.constants = Constants(self.origins)
        self._finder = Actors(self.origins, self.constants)
        self._declared: dict[Module, list[Actor]] = {}
        self.actors = [actor for module in project.modules for actor in self.declared(module)]

    def declared(self, module: Module) -> list[Actor]:
        """Return the actors that a module declares, whether it is to be checked or not."""
        if module not in self._declared:
            self._declared[module] = list(self._finder.of(module))
        return self._declared[module]

    def actor(self, expression: ast.expr, module: Module) -> Actor | None:
        """Return the actor that an expression certainly stands for."""
        if isinstance(expression, ast.Call):
            return self._actor_by_name(expression, module)
        places: list[tuple[ast.AST, Module]] = [(expression, module)]
        if isinstance(expression, ast.Name):
            found = self.project.seen_from(expression.id, expression, module)
            if any(is_import(each) for each in found):
                return self._actor_at(expression, module)
            places = [(each.binding.value or each.binding.node, each.module) for each in found]
        actors = {id(each): each for each in (self._actor_at(*place) for place in places)}
        return next(iter(actors.values())) if len(actors) == 1 else None

    def _actor_by_name(self, call: ast.Call, module: Module) -> Actor | None:
        """`broker.get_actor("name")`, or what a call declares on the spot."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "get_actor" and len(call.args) == 1:
            name = self.constants.value(call.args[0], module)
            named = [each for each in self.actors if each.name == name]
            return named[0] if len(named) == 1 else None
        return self._actor_at(call, module)

    def _actor_at(self, node: ast.AST, module: Module) -> Actor | None:
        source, home = self.constants.source(node, module) if isinstance(node, ast.expr) else (node, module)
        for actor in self.declared(home):
            if source is actor.place or (source is actor.function and actor.home is home):
                return actor
        return None

    def called(self, call: ast.Call, module: Module) -> tuple[Function, Module] | None:
        """Return the project's function that a call certainly calls."""
        source, home = self.constants.source(call.func, module)
        return (source, home) if isinstance(source, ast.FunctionDef | ast.AsyncFunctionDef) else None


def body_of(function: Function) -> Iterator[ast.AST]:
    """Yield what is in a function's body, in the order of the source as far as statements go."""
    for statement in function.body:
        yield from ast.walk(statement)


def calls_in(function: Function) -> list[ast.Call]:
    """Return the calls in a function's body, in the order of the source."""
    calls = [node for node in body_of(function) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))


def finding(code: str, node: ast.AST, module: Module, why: str, fix: str, last_line: int = 0) -> Finding:
    """Return a finding at a node."""
    line = getattr(node, "lineno", 1)
    last = last_line or getattr(node, "end_lineno", line) or line
    return Finding(str(module.path), line, code, why, fix, last)


def about(actor: Actor, code: str, why: str, fix: str, option: str = "") -> Finding:
    """Return a finding about an actor's declaration, or about one of its options."""
    place = actor.written(option) if option else actor.place
    why = f"actor {actor.name!r}: {why}"
    return finding(code, place, actor.module, why, fix, actor.last_header_line)
