"""Where does a function write to a database, or talk to the network? As far as its source decides it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from .inspection import Inspection, calls_in
from .kinds import (
    CHANGE,
    NETWORK,
    OWN_CONNECTION,
    OWN_SESSION,
    QUERY,
    SESSION,
    SQL_CHANGE,
    TEXT,
    WRITING,
)
from .module import Function, Module

EXECUTE: Final = {
    *("execute", "executemany", "exec", "exec_driver_sql", "scalar", "scalars", "stream", "stream_scalars"),
    *("execute_many", "executescript", "fetch", "fetchrow", "fetchval"),
}
_UNIT_OF_WORK: Final = {
    *("add", "add_all", "delete", "merge"),
    *("bulk_save_objects", "bulk_insert_mappings", "bulk_update_mappings"),
}
_BUILDERS: Final = re.compile(
    r"(?:(?:requests|httpx|aiohttp)\.(?:Timeout|Request|Headers|URL|codes)|socket\.(?:gethostname|getfqdn|timeout))(?:\(\))?.*"
)
_DEEP: Final = 5


class Effect(NamedTuple):
    """Something that a repetition repeats.

    Attributes:
        node: the call.
        what: in words.
        via: the functions through which it is reached, none for the body itself.
    """

    node: ast.AST
    what: str
    via: tuple[str, ...] = ()


def writes_in(inspection: Inspection, function: Function, module: Module) -> Iterator[Effect]:
    """Yield the writes in a function's own body."""
    for call in calls_in(function):
        what = _written_by(inspection, call, module)
        if what:
            yield Effect(call, what)


def network_in(inspection: Inspection, function: Function, module: Module) -> Iterator[Effect]:
    """Yield the calls in a function's own body that reach the network."""
    for call in calls_in(function):
        origins = inspection.origins.of(call.func, module)
        if origins and all(NETWORK.fullmatch(each) and not _BUILDERS.fullmatch(each) for each in origins):
            yield Effect(call, f"{ast.unparse(call.func)}()")


def reached(inspection: Inspection, function: Function, module: Module, *, network: bool) -> Effect | None:
    """Return an effect of a function that this one calls, directly or through others of the same package."""
    package = module.name.partition(".")[0]
    seen = {function}
    ways: list[tuple[Function, Module, tuple[str, ...]]] = [(function, module, ())]
    for _ in range(_DEEP):
        further: list[tuple[Function, Module, tuple[str, ...]]] = []
        for caller, home, via in ways:
            for call in calls_in(caller):
                called = inspection.called(call, home)
                if called is None or called[0] in seen or called[1].name.partition(".")[0] != package:
                    continue
                seen.add(called[0])
                further.append((*called, (*via, called[0].name)))
        for callee, home, via in further:
            effects = network_in if network else writes_in
            for effect in effects(inspection, callee, home):
                return effect._replace(via=via)
        ways = further
    return None


def _written_by(inspection: Inspection, call: ast.Call, module: Module) -> str:
    origins = inspection.origins
    if origins.are(WRITING, call, module):
        return "store.writing()"
    if not isinstance(call.func, ast.Attribute):
        return ""
    name, receiver = call.func.attr, call.func.value
    if _is_in_memory(inspection, receiver, module):
        return ""
    if name in EXECUTE and call.args and _changes(inspection, call.args[0], module):
        return f"{name}() of a statement that changes rows"
    if name in _UNIT_OF_WORK and origins.are(SESSION, receiver, module):
        return f"{name}() of a session"
    if name == "commit" and (
        origins.are(OWN_SESSION, receiver, module) or origins.are(OWN_CONNECTION, receiver, module)
    ):
        return "commit()"
    if name in {"update", "delete"} and origins.are(QUERY, receiver, module):
        return f"{name}() of a query"
    return ""


def _is_in_memory(inspection: Inspection, receiver: ast.expr, module: Module) -> bool:
    """Whether it is a database that goes with the job."""
    source, home = inspection.constants.source(receiver, module)
    if not isinstance(source, ast.Call):
        return False
    if isinstance(source.func, ast.Attribute) and source.func.attr == "cursor":
        return _is_in_memory(inspection, source.func.value, home)
    is_sqlite = inspection.origins.of(source.func, home) == {"sqlite3.connect"}
    return is_sqlite and bool(source.args) and inspection.constants.value(source.args[0], home) == ":memory:"


def _changes(inspection: Inspection, statement: ast.expr, module: Module) -> bool:
    return inspection.origins.are(CHANGE, statement, module) or bool(
        SQL_CHANGE.match(sql_of(inspection, statement, module))
    )


def sql_of(inspection: Inspection, statement: ast.expr, module: Module) -> str:
    """Return the SQL of a text or of `text("…")`, also through variables; empty if it is neither."""
    source, home = inspection.constants.source(statement, module)
    while isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        if inspection.origins.are(TEXT, source.func, home):
            break
        source, home = inspection.constants.source(source.func.value, home)  # `text("…").bindparams(…)`
    if isinstance(source, ast.Call) and inspection.origins.are(TEXT, source.func, home) and source.args:
        source = source.args[0]
    return _text(inspection, source, home) if isinstance(source, ast.expr) else ""


def _text(inspection: Inspection, expression: ast.expr, module: Module) -> str:
    """Return a text; what an f-string puts in counts as a word."""
    if isinstance(expression, ast.JoinedStr):
        parts = [each.value if isinstance(each, ast.Constant) else "word" for each in expression.values]
        return "".join(str(each) for each in parts)
    value = inspection.constants.value(expression, module)
    return value if isinstance(value, str) else ""
