"""JOB106: does an actor catch everything and raise nothing? Its job counts as completed then.

An error is what certainly ends there: `except:` and `except BaseException`, which take the interrupts of
time limits and shutdowns too, and `except Exception` around all that the actor does, or around its session,
whose handler does nothing but log, pass or return. Who hands the exception on, goes on with something else,
or tries something beside the job's own work, may know what he does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ..actors import Actor
from ..finding import Finding
from ..inspection import Inspection, body_of, finding
from ..module import Module
from ..work import holds_all_work, touches_session

_EVERYTHING: Final = re.compile(r"builtins\.(BaseException|Exception)")
_BASE: Final = re.compile(r"builtins\.BaseException")
_SUPPRESS: Final = re.compile(r"contextlib\.suppress")
_ENDS: Final = re.compile(r"sys\.exit|os\._exit|os\.abort|builtins\.(exit|quit)|os\.kill")
_RAISES: Final = re.compile(r"raise|abort|fail\b|^exit|die\b|^retry|throw|panic", re.IGNORECASE)
"""Names of functions that may raise, wherever they are from."""
_TELLING: Final = {
    *("debug", "info", "warning", "warn", "error", "exception", "critical", "log", "msg", "bind"),
    *("inc", "incr", "increment", "observe", "labels", "capture_exception", "capture_message"),
    *("record_exception", "set_status", "add_note"),
}
_CLEANING: Final = {"rollback", "close", "flush", "expunge_all", "cancel", "release"}
_SAYING: Final = re.compile(
    r"builtins\.(print|str|repr|format|type)|traceback\.\w+|logging\.\w+|warnings\.warn"
    r"|sentry_sdk\.\w+"
)
_FIX: Final = (
    "name the exceptions that are no failure, or end the handler with `raise`, so that the job is retried or "
    "becomes a dead letter"
)


def check_swallowing(inspection: Inspection) -> Iterator[Finding]:
    """Yield handlers in actors that end every exception."""
    for actor in inspection.actors:
        for node in body_of(actor.function):
            if isinstance(node, ast.ExceptHandler):
                what = _Handler(inspection, actor, node).swallows()
                if what:
                    yield _finding(actor, node, what, node.type.end_lineno if node.type else node.lineno)
            elif isinstance(node, ast.With):
                yield from _suppressed(inspection, actor, node)


def _suppressed(inspection: Inspection, actor: Actor, block: ast.With) -> Iterator[Finding]:
    """`with suppress(Exception):` is a handler that does nothing."""
    for item in block.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or not inspection.origins.are(_SUPPRESS, call.func, actor.home):
            continue
        takes_all = any(inspection.origins.are(_EVERYTHING, each, actor.home) for each in call.args)
        if takes_all and _is_the_jobs(inspection, actor, block):
            yield _finding(actor, call, "`suppress`", call.end_lineno)


def _finding(actor: Actor, node: ast.AST, what: str, last_line: int | None) -> Finding:
    why = f"actor {actor.name!r}: {what} ends every exception, and the job counts as completed"
    return finding("JOB106", node, actor.home, why, _FIX, last_line or 0)


def _is_the_jobs(inspection: Inspection, actor: Actor, block: ast.Try | ast.TryStar | ast.With) -> bool:
    """Whether what fails in a block is the job's own work, and not something beside it."""
    return touches_session(inspection, block.body, actor.home) or holds_all_work(
        block, actor.function, actor.home, lambda call: _says(inspection, call, actor.home)
    )


def _says(inspection: Inspection, call: ast.Call, module: Module) -> bool:
    """Whether a call only tells somebody."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TELLING:
        return True
    return inspection.origins.are(_SAYING, call.func, module)


class _Handler:
    """One `except` in an actor."""

    def __init__(self, inspection: Inspection, actor: Actor, handler: ast.ExceptHandler) -> None:
        self._inspection = inspection
        self._actor = actor
        self._handler = handler
        self._module: Module = actor.home
        self._nodes = [node for statement in handler.body for node in ast.walk(statement)]

    def swallows(self) -> str:
        """Return how it is written if it certainly ends every exception; otherwise nothing."""
        what, takes_interrupts = self._takes()
        if not what or self._raises() or self._hands_on():
            return ""
        around = self._module.parent(self._handler)
        if takes_interrupts or not isinstance(around, ast.Try | ast.TryStar):
            return what
        does_nothing = all(self._does_nothing(each) for each in self._handler.body)
        is_the_jobs = does_nothing and _is_the_jobs(self._inspection, self._actor, around)
        return what if is_the_jobs else ""

    def _takes(self) -> tuple[str, bool]:
        """Return how it is written if it takes everything, and whether interrupts are among that."""
        kind = self._handler.type
        if kind is None:
            return "bare `except`", True
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        origins = self._inspection.origins
        if not any(origins.are(_EVERYTHING, each, self._module) for each in kinds):
            return "", False
        if self._is_narrowed():
            return "", False
        is_base = any(origins.are(_BASE, each, self._module) for each in kinds)
        return f"`except {ast.unparse(kind)}`", is_base

    def _is_narrowed(self) -> bool:
        """Whether a handler before takes everything already."""
        around = self._module.parent(self._handler)
        handlers = around.handlers if isinstance(around, ast.Try | ast.TryStar) else []
        before = handlers[: handlers.index(self._handler)] if self._handler in handlers else []
        return any(
            each.type is None or self._inspection.origins.are(_BASE, each.type, self._module)
            for each in before
        )

    def _raises(self) -> bool:
        for node in self._nodes:
            if isinstance(node, ast.Raise):
                return True
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if _RAISES.search(name) or self._inspection.origins.are(_ENDS, node.func, self._module):
                    return True
                called = self._inspection.called(node, self._module)
                if called is not None and any(isinstance(each, ast.Raise) for each in body_of(called[0])):
                    return True
        return self._raises_after()

    def _raises_after(self) -> bool:
        """Whether what the handler notes is asked for by a `raise` further down."""
        tried = self._module.parent(self._handler)
        body = tried.body if isinstance(tried, ast.Try | ast.TryStar) else []
        nodes = [*self._nodes, *(node for each in body for node in ast.walk(each))]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        noted = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        end = self._handler.end_lineno or 0
        for node in body_of(self._actor.function):
            if isinstance(node, ast.Raise) and node.lineno > end:
                near = [node, *[each.test for each in self._module.around(node) if isinstance(each, ast.If)]]
                asked = {name.id for each in near for name in ast.walk(each) if isinstance(name, ast.Name)}
                if noted & asked or self._leads_to(node):
                    return True
        return False

    def _leads_to(self, node: ast.Raise) -> bool:
        """Whether the `raise` is what comes after the `try`, or after the loop that it is in."""
        leaves = any(isinstance(each, ast.Return) for each in self._nodes)
        return not leaves and self._module.parent(node) in self._module.around(self._handler)

    def _hands_on(self) -> bool:
        """Whether the exception is given to somebody, other than to be told."""
        name = self._handler.name
        for node in self._nodes:
            if name and isinstance(node, ast.Name) and node.id == name and not self._is_told(node):
                return True
            if isinstance(node, ast.Call) and self._inspection.origins.of(node.func, self._module) == {
                "sys.exc_info"
            }:
                return not self._is_told(node)
        return False

    def _is_told(self, node: ast.AST) -> bool:
        return any(
            isinstance(each, ast.Call) and _says(self._inspection, each, self._module)
            for each in self._module.around(node)
        )

    def _does_nothing(self, statement: ast.stmt) -> bool:
        """Whether a statement only passes, tells, or leaves."""
        match statement:
            case ast.Pass() | ast.Continue() | ast.Break() | ast.Return(value=None):
                return True
            case ast.Return():
                return not any(isinstance(each, ast.Call | ast.Await) for each in ast.walk(statement))
            case ast.Expr(value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Await(value=ast.Call() as call) | (ast.Call() as call)):
                is_cleaning = isinstance(call.func, ast.Attribute) and call.func.attr in _CLEANING
                return _says(self._inspection, call, self._module) or is_cleaning
            case _:
                return False
