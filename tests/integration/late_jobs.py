"""How does a test run actors that compute first and write last, once as `def` and once as `async def`?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dramatiq import Actor
from sqlalchemy.orm import Session

from middleware import effect

from .keyed_jobs import KeyedJobs, enter


def nothing(one: str) -> None:
    """Compute nothing."""


def late_actor(
    jobs: KeyedJobs,
    compute: Callable[[str], Any] = nothing,
    write: Callable[[Session, str], Any] = enter,
    *,
    times: int = 1,
    swallow: type[BaseException] = LookupError,
    **options: Any,
) -> Actor[..., Any]:
    """Declare an actor with the parameters `one` and `two`.

    Parameters:
        compute: called before the block, in a thread of its own if the actor is an `async def`.
        write: called in the block.
        times: how often the block is entered. Defaults to once.
        swallow: what the actor swallows of each block. Defaults to nothing that comes.
        options: of the actor.
    """

    def act(one: str, two: str = "2") -> str:
        compute(one)
        for _ in range(times):
            with suppress(swallow), effect() as session:
                write(session, one)
        return "done"

    async def act_async(one: str, two: str = "2") -> str:
        await asyncio.to_thread(compute, one)
        for _ in range(times):
            with suppress(swallow):
                async with effect() as session:
                    await session.run_sync(write, one)
        return "done"

    return jobs.declare(
        act if jobs.kind == "def" else act_async,
        **{"name": "act", "idempotency_key": "enter:{one}", "effect": "late", **options},
    )
