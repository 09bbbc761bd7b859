"""How does a coroutine take a step that a cancellation must not cut?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from collections.abc import Coroutine as Awaited
from typing import Any, TypeVar

R = TypeVar("R")


async def to_its_end(step: Awaited[Any, Any, R]) -> R:
    """Await a step that a cancellation must not cut: a COMMIT is either sent and answered, or not sent.

    Raises:
        asyncio.CancelledError: it was cancelled meanwhile; the step has ended.
    """
    running = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # looked at, so that asyncio does not report it
        raise


async def in_thread(function: Callable[..., R], *args: Any) -> R:
    """Run a function that blocks in another thread, to its end."""
    return await to_its_end(asyncio.to_thread(function, *args))
