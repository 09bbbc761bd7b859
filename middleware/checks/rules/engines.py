"""JOB105: is an engine made for every job, or a session beside the one that the actor is given?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..actors import Actor
from ..finding import Finding
from ..inspection import Inspection, calls_in, finding
from ..kinds import ENGINE_MAKER, GIVEN, SESSION_MAKER


def check_engines(inspection: Inspection) -> Iterator[Finding]:
    """Yield engines made in actors, and sessions made in actors with a key."""
    for actor in inspection.actors:
        is_async = isinstance(actor.function, ast.AsyncFunctionDef)
        given = "current_async_session" if is_async else "current_session"
        for call in calls_in(actor.function):
            if inspection.origins.are(ENGINE_MAKER, call.func, actor.home):
                yield finding(
                    "JOB105",
                    call,
                    actor.home,
                    f"actor {actor.name!r} makes an engine: each job opens connections anew",
                    "make it once, at the top of a module",
                )
            elif (
                actor.has_session
                and not _joins(inspection, call, actor)
                and inspection.origins.are(SESSION_MAKER, call.func, actor.home)
            ):
                yield finding(
                    "JOB105",
                    call,
                    actor.home,
                    f"actor {actor.name!r} makes a session: what it writes is not committed with the key",
                    f"use {given}()",
                )


def _joins(inspection: Inspection, call: ast.Call, actor: Actor) -> bool:
    """Whether a session is made on the connection of the one that the actor is given."""
    bound = [*call.args, *(each.value for each in call.keywords)]
    return any(inspection.origins.are(GIVEN, each, actor.home) for each in bound)
