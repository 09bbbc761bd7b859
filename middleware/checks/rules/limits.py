"""JOB110, JOB111, JOB207: do prefetch, time limits and delivery limits fit each other and the broker?"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from ...durations import format_duration
from ...errors import DeclarationError
from ...transport.patience import WAY_OUT, Patience
from ...transport.queues import Queue
from ..actors import Actor
from ..constants import UNKNOWN
from ..finding import Finding
from ..inspection import Inspection, about, finding
from ..kinds import QUEUE
from ..module import Module

_MS: Final = timedelta(milliseconds=1)
_FIELDS: Final = tuple(inspect.signature(Queue).parameters)


def check_queues(inspection: Inspection, patience: Patience) -> Iterator[Finding]:
    """Yield queues that are declared out of range, or whose jobs are held too long."""
    for call, module in _declared(inspection):
        values = _values(inspection, call, module)
        if values is None:
            continue
        try:
            queue = Queue(**values)
        except (DeclarationError, TypeError) as error:
            why, _, fix = str(error).partition("; ")
            yield finding("JOB111", call, module, why, fix or "choose a value in range")
            continue
        problem = patience.problem([queue])
        if problem:
            yield finding("JOB110", call, module, problem, WAY_OUT)


def check_together(queues: Mapping[str, Queue], patience: Patience) -> Iterator[Finding]:
    """Yield the hint that one worker cannot consume all queues, though each alone."""
    every = list(queues.values())
    problem = patience.problem(every)
    if problem and not any(patience.problem([queue]) for queue in every):
        yield Finding("", 0, "JOB207", problem, f"start workers with --queues; or {WAY_OUT}")


def check_time_limits(inspection: Inspection, queues: Mapping[str, Queue]) -> Iterator[Finding]:
    """Yield actors whose time limit is above their queue's."""
    by_module: dict[Module, dict[str, Queue]] = {}
    for call, module in _declared(inspection):
        values = _values(inspection, call, module)
        try:
            queue = Queue(**values) if values is not None else None
        except (DeclarationError, TypeError):
            continue
        if queue is not None:
            by_module.setdefault(module, {})[queue.name] = queue
    everywhere = _unanimous([queues, *by_module.values()])
    for actor in inspection.actors:
        known = queues if actor.loaded is not None else everywhere | by_module.get(actor.module, {})
        yield from _check_time_limit(actor, known)


def _unanimous(declared: Sequence[Mapping[str, Queue]]) -> dict[str, Queue]:
    """Return the queues of which all that are of one name have one time limit."""
    found = {name: queue for each in declared for name, queue in each.items()}
    return {
        name: queue
        for name, queue in found.items()
        if all(each[name].time_limit == queue.time_limit for each in declared if name in each)
    }


def _check_time_limit(actor: Actor, queues: Mapping[str, Queue]) -> Iterator[Finding]:
    limit, name = actor.option("time_limit"), actor.option("queue_name")
    queue = queues.get(name) if isinstance(name, str) else None
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if queue is None or not is_number or 0 < limit <= queue.time_limit / _MS:
        return
    yield about(
        actor,
        "JOB111",
        f"expected time_limit to be milliseconds above zero and at most {queue.time_limit / _MS:.0f}, the "
        f"limit of queue {queue.name!r} ({format_duration(queue.time_limit)}), got: {limit!r}",
        "raise the queue's time_limit, or choose another queue",
        "time_limit",
    )


def _declared(inspection: Inspection) -> Iterator[tuple[ast.Call, Module]]:
    for module in inspection.project.modules:
        if "Queue" not in module.text:
            continue
        for node in module.nodes:
            if isinstance(node, ast.Call) and inspection.origins.are(QUEUE, node.func, module):
                yield node, module


def _values(inspection: Inspection, call: ast.Call, module: Module) -> dict[str, Any] | None:
    """Return a Queue's fields, None if the source does not decide all of them."""
    if call.args:
        return None
    values = {each.arg or "": inspection.constants.value(each.value, module) for each in call.keywords}
    is_known = "name" in values and set(values) <= set(_FIELDS)
    return values if is_known and not any(each is UNKNOWN for each in values.values()) else None
