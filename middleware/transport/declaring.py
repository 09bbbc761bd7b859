"""Is an actor declared in a way that the broker can keep? Checked at declaration, at import."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from dramatiq import Actor

from ..errors import DeclarationError
from .queues import Queue
from .wrapping import function_of

_MS: Final = timedelta(milliseconds=1)


def check_actor(actor: Actor[..., Any], specs: Mapping[str, Queue]) -> None:
    """Check an actor's queue, its time limit, its snapshots and why it needs no key.

    Raises:
        DeclarationError: names actor, option, rule and way out.
    """
    _check_queue(actor, specs)
    _check_time_limit(actor, specs[actor.queue_name])
    _check_snapshots(actor)
    problem = idempotent_problem(actor.options)
    if problem:
        raise DeclarationError(f"actor {actor.actor_name!r}: {problem}")


def by_name(queues: Iterable[Queue]) -> dict[str, Queue]:
    """Return the declared queues by name.

    Raises:
        DeclarationError: two have the same name.
    """
    specs: dict[str, Queue] = {}
    for queue in queues:
        if queue.name in specs:
            raise DeclarationError(
                f"expected each queue to be declared once, got: {queue.name!r} twice; remove one of them"
            )
        specs[queue.name] = queue
    return specs


def parameters_of(actor: Actor[..., Any]) -> list[str]:
    """Return the names of an actor's parameters, in order; remembered on the actor."""
    names: list[str] | None = actor.__dict__.get("_jobs_parameters")
    if names is None:
        names = list(inspect.signature(function_of(actor)).parameters)
        actor.__dict__["_jobs_parameters"] = names
    return names


def _check_queue(actor: Actor[..., Any], specs: Mapping[str, Queue]) -> None:
    if actor.queue_name not in specs:
        raise DeclarationError(
            f"actor {actor.actor_name!r}: expected queue_name to be one of {known(specs)}, "
            f"got: {actor.queue_name!r}; use one of them or declare a Queue of that name"
        )


def _check_time_limit(actor: Actor[..., Any], queue: Queue) -> None:
    limit = actor.options.get("time_limit")
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if limit is not None and not (is_number and 0 < limit <= queue.time_limit / _MS):
        raise DeclarationError(
            f"actor {actor.actor_name!r}: expected time_limit to be milliseconds above zero and at most "
            f"{queue.time_limit / _MS:.0f}, the limit of queue {queue.name!r}, got: {limit!r}; "
            f"raise the queue's time_limit or choose another queue"
        )


def _check_snapshots(actor: Actor[..., Any]) -> None:
    snapshots = actor.options.get("snapshots", ())
    names = parameters_of(actor)
    known_names = not isinstance(snapshots, str) and all(name in names for name in snapshots)
    if not known_names:
        raise DeclarationError(
            f"actor {actor.actor_name!r}: expected snapshots to be a tuple of its parameters "
            f"({', '.join(names)}), got: {snapshots!r}"
        )


def idempotent_problem(options: Mapping[str, Any]) -> str:
    """Return what is wrong with an actor's `idempotent`, the reason why a second run does no harm.

    >>> idempotent_problem({"idempotent": "upsert by primary key"})
    ''
    """
    reason = options.get("idempotent")
    if reason is None:
        return ""
    if not isinstance(reason, str) or not reason.strip():
        return (
            f"expected idempotent to be the reason why a second run does no harm, a text, got: {reason!r}; "
            'write it like idempotent="upsert by primary key"'
        )
    if options.get("idempotency_key") is not None:
        return (
            f"expected idempotent to stand for a key, got: both idempotent={reason!r} and "
            f"idempotency_key={options['idempotency_key']!r}; leave one of them out"
        )
    return ""


def known(specs: Mapping[str, Queue]) -> str:
    """Return the declared queues' names for an error."""
    return ", ".join(sorted(specs))
