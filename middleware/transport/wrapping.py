"""How does a middleware get around an actor's function, so that what it does can fail the job?

Dramatiq logs and swallows what a per-message hook raises. Whatever a job's safety depends on wraps the
function instead, at declaration; the first middleware of the list wraps innermost.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from dramatiq import Actor
from dramatiq.asyncio import async_to_sync

Function: TypeAlias = Callable[..., Any]
Coroutine: TypeAlias = Callable[..., Awaitable[Any]]


def coroutine_of(actor: Actor[..., Any]) -> Coroutine | None:
    """Return the `async def` behind an actor, None for a plain function.

    Dramatiq turns an async actor into a function that waits for the event loop thread and keeps the
    original as `__wrapped__`.
    """
    inner = getattr(actor.fn, "__wrapped__", None)
    return inner if iscoroutinefunction(inner) else None


def function_of(actor: Actor[..., Any]) -> Function:
    """Return the function as its author wrote it, for its name, signature and module."""
    function: Function = actor.fn
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def wrap(
    actor: Actor[..., Any],
    *,
    sync: Callable[[Function], Function],
    coroutine: Callable[[Coroutine], Coroutine],
) -> None:
    """Put a wrapper around an actor's function.

    Parameters:
        actor: the actor that is being declared.
        sync: takes a plain function and returns its replacement.
        coroutine: takes an `async def` and returns its replacement, an `async def` as well.
    """
    inner = coroutine_of(actor)
    if inner is None:
        actor.fn = functools.wraps(actor.fn)(sync(actor.fn))
    else:
        actor.fn = async_to_sync(functools.wraps(inner)(coroutine(inner)))
