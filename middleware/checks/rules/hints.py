"""JOB201, JOB203 to JOB206: what often turns out wrong, and may be meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter
from typing import Final

from ..actors import Actor
from ..constants import UNKNOWN
from ..finding import Finding
from ..inspection import Inspection, about, calls_in, finding
from ..module import Module
from ..sends import Send, read_send, sends
from ..writes import writes_in

_IDENTIFIES: Final = re.compile(
    r"(?:.+_)?(?:id|uuid|guid|key|slug|sku|version|revision)|tenant|tenant_name", re.I
)
_MANY_IDS: Final = re.compile(r"(?:.+_)?(?:ids|uuids|guids|keys|slugs)", re.I)
_LISTS: Final = re.compile(
    r"builtins\.(list|tuple|set|frozenset)|typing\.(List|Sequence|Iterable|Tuple|Set|Collection)"
    r"|collections\.abc\.(Sequence|Iterable|Collection|Set)"
)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_RESULTS: Final = {"get_result", "get_results", "wait"}


def check_identifying(inspection: Inspection) -> Iterator[Finding]:
    """Yield arguments that seem to name what the job is about and are not in its key."""
    for actor in inspection.actors:
        key, snapshots = actor.option("idempotency_key"), actor.option("snapshots")
        if not isinstance(key, str) or snapshots is UNKNOWN:
            continue
        try:
            fields = {field for _, field, _, _ in Formatter().parse(key) if field}
        except ValueError:
            continue
        missing = [
            each
            for each in actor.parameter_names
            if _IDENTIFIES.fullmatch(each) and each not in fields and each not in (snapshots or ())
        ]
        if missing and fields <= set(actor.parameter_names):
            yield about(
                actor,
                "JOB201",
                f"{', '.join(missing)} may identify what the job is about, and is not in the key: jobs that "
                "differ in nothing else are key conflicts",
                "add it to idempotency_key, unless the other fields decide it",
                "idempotency_key",
            )


def check_lists(inspection: Inspection) -> Iterator[Finding]:
    """Yield parameters that take many ids."""
    for actor in inspection.actors:
        for each in actor.parameters:
            annotation = each.annotation
            if not _MANY_IDS.fullmatch(each.arg) or not isinstance(annotation, ast.Subscript | ast.Name):
                continue
            head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
            if inspection.origins.are(_LISTS, head, actor.home):
                yield finding(
                    "JOB203",
                    each,
                    actor.home,
                    f"actor {actor.name!r}: {each.arg} may be many things to do in one job: if one fails, "
                    "all are done again",
                    "send a job for each, with broker.enqueue_many()",
                )


def check_loops(inspection: Inspection) -> Iterator[Finding]:
    """Yield sends in loops, other than in actors whose transaction they join without a wait."""
    joined = {actor.function for actor in inspection.actors if actor.has_session}
    for send in sends(inspection):
        if send.is_message or send.module.function_around(send.call) in joined:
            continue
        if _is_repeated(send.call, send.module):
            yield finding(
                "JOB204",
                send.call,
                send.module,
                f"jobs for actor {send.actor.name!r} are sent one by one in a loop, each with a wait for its "
                "confirm",
                "make messages with .message() and hand them to broker.enqueue_many(), which waits once",
            )


def _is_repeated(call: ast.AST, module: Module) -> bool:
    inner = call
    for outer in module.around(call):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return False
        if isinstance(outer, _LOOPS) and not _is_once(outer, inner):
            return True
        inner = outer
    return False


def _is_once(loop: ast.AST, child: ast.AST) -> bool:
    """Whether a part of a loop runs once, as what it goes over does."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        return child is loop.iter or child in loop.orelse
    return False


def check_results(inspection: Inspection) -> Iterator[Finding]:
    """Yield waits for the result of a job that was just sent."""
    for module in inspection.project.modules:
        if "get_result" not in module.text:
            continue
        for node in module.nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _RESULTS
            ):
                send = _sent(inspection, node.func.value, module)
                if send is not None:
                    yield finding(
                        "JOB205",
                        node,
                        module,
                        f"the result of a job for actor {send.actor.name!r} is waited for after its send: "
                        "the caller is held up by every job before it",
                        "call the function directly, with a timeout; or answer now and let the caller ask "
                        "later",
                    )


def _sent(inspection: Inspection, expression: ast.expr, module: Module) -> Send | None:
    source, home = inspection.constants.source(expression, module)
    if isinstance(source, ast.Await):
        source = source.value
    return read_send(inspection, source, home) if isinstance(source, ast.Call) else None


def check_order(inspection: Inspection) -> Iterator[Finding]:
    """Yield sends that stand before a write, in actors without a key."""
    for actor in inspection.actors:
        if actor.option("idempotency_key") is None:
            yield from _sent_too_early(inspection, actor)


def _sent_too_early(inspection: Inspection, actor: Actor) -> Iterator[Finding]:
    writes = [each.node for each in writes_in(inspection, actor.function, actor.home)]
    for call in calls_in(actor.function):
        send = read_send(inspection, call, actor.home)
        later = [each for each in writes if getattr(each, "lineno", 0) > call.lineno]
        if send is not None and not send.is_message and later:
            yield finding(
                "JOB206",
                call,
                actor.home,
                f"actor {actor.name!r} sends a job for {send.actor.name!r} before it writes (line "
                f"{getattr(later[0], 'lineno', 0)}): that job may run first, or although the write fails",
                "send after the commit, or give the actor a key",
            )
