"""JOB101, JOB102, JOB109: does the key fit the actor, is it the actor's own, or why is there none?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...effects.keys import KeyTemplate
from ...transport.declaring import idempotent_problem
from ..actors import Actor
from ..constants import UNKNOWN
from ..finding import Finding
from ..inspection import Inspection, about


def check_templates(inspection: Inspection) -> Iterator[Finding]:
    """Yield keys that do not fit the signature, and keys that two actors share."""
    first: dict[object, Actor] = {}
    for actor in sorted(inspection.actors, key=_is_of_no_package):
        text = actor.option("idempotency_key")
        if text is UNKNOWN:
            yield from _check_filled_in(inspection, actor)
        if text is None or text is UNKNOWN or (actor.is_wrapped and not _fits(text, actor)):
            continue
        try:
            template = KeyTemplate(text, actor.parameter_names)
        except ValueError as error:
            why, _, fix = str(error).rpartition("; ")
            yield about(actor, "JOB101", why, fix, "idempotency_key")
            continue
        places = [(each, template.shape) for each in _applications(actor)]
        other = next((first[each] for each in places if each in first), actor)
        first.setdefault(places[0], actor)
        if other.name != actor.name and not _are_alternatives(actor, other):
            line = getattr(other.place, "lineno", 0)
            yield about(
                actor,
                "JOB102",
                f"its keys are those of actor {other.name!r} ({other.module.path}:{line}), so that a job "
                "of one makes a job of the other a duplicate",
                "begin each idempotency_key with a word of its own",
                "idempotency_key",
            )


def _fits(text: object, actor: Actor) -> bool:
    try:
        KeyTemplate(text, actor.parameter_names)  # type: ignore[arg-type]  # it says what else it is
    except ValueError:
        return False
    return True


def _check_filled_in(inspection: Inspection, actor: Actor) -> Iterator[Finding]:
    """Yield f-strings with a parameter's name: they are filled in when the actor is declared."""
    written = actor.written("idempotency_key")
    if not isinstance(written, ast.keyword) or not isinstance(written.value, ast.JoinedStr):
        return
    names = [each for each in ast.walk(written.value) if isinstance(each, ast.Name)]
    for node in names:
        if node.id in actor.parameter_names and not inspection.project.seen_from(node.id, node, actor.module):
            yield about(
                actor,
                "JOB101",
                f"its idempotency_key is an f-string, which has no {node.id} when the actor is declared",
                "write it without the f: a job's arguments are filled in when it is sent",
                "idempotency_key",
            )
            return


def _are_alternatives(one: Actor, other: Actor) -> bool:
    """Whether two actors stand in two branches of one `if` or `try`, so that only one may be there."""
    if one.module is not other.module:
        return False
    branches = [dict(_branches(each)) for each in (one, other)]
    return any(branch != branches[1].get(fork, branch) for fork, branch in branches[0].items())


def _branches(actor: Actor) -> Iterator[tuple[ast.AST, str]]:
    """Yield the forks that a declaration is in, each with the branch."""
    inner: ast.AST = actor.place
    for outer in actor.module.around(actor.place):
        if isinstance(outer, ast.If | ast.Try):
            for name in ("body", "orelse", "handlers"):
                if inner in getattr(outer, name, ()):
                    yield outer, name
        inner = outer


def _applications(actor: Actor) -> list[object]:
    """Return where an actor is declared, then to which applications it may be added, as far as that is seen.

    Files side by side that are no package may be programs of their own; one that imports an application adds
    to it.
    """
    around = actor.module.function_around(actor.place)
    if around is not None and actor.loaded is None:
        return [around]  # such as a test's own
    if not _is_of_no_package(actor):
        return [actor.module.name.partition(".")[0]]
    imports = [each for each in actor.module.nodes if isinstance(each, ast.Import | ast.ImportFrom)]
    names = {alias.name for each in imports if isinstance(each, ast.Import) for alias in each.names}
    names |= {each.module or "" for each in imports if isinstance(each, ast.ImportFrom) and not each.level}
    return [actor.module, *sorted({name.partition(".")[0] for name in names})]


def _is_of_no_package(actor: Actor) -> bool:
    return "." not in actor.module.name and actor.module.path.name != "__init__.py"


def check_reasons(inspection: Inspection) -> Iterator[Finding]:
    """Yield values of `idempotent` that are no reason."""
    for actor in inspection.actors:
        values = {name: actor.option(name) for name in ("idempotent", "idempotency_key")}
        if values["idempotent"] is UNKNOWN:
            continue
        if values["idempotency_key"] is UNKNOWN and "idempotency_key" not in actor.options:
            values["idempotency_key"] = None
        problem = idempotent_problem(values)
        if problem:
            why, _, fix = problem.rpartition("; ")
            yield about(actor, "JOB109", why, fix, "idempotent")
