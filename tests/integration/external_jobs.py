"""How does a test run actors that call somebody outside the database, as `def` and as `async def`?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from dramatiq import Actor
from sqlalchemy import Connection

from middleware import current_key, current_key_async, effect
from middleware.effects.entry import Entry
from middleware.effects.intents import Intents, Taken
from middleware.store import Store

from .keyed_jobs import KeyedJobs, rows

KEY = "pay:{one}"


def external_actor(
    jobs: KeyedJobs,
    call: Callable[[str], Any],
    *,
    before: Callable[[str], Any] = lambda one: None,
    write: Callable[..., Any] | None = None,
    result: Any = None,
    reconcile: Callable[[str], Any] | None = None,
    swallow: type[BaseException] = LookupError,
    **options: Any,
) -> Actor[..., Any]:
    """Declare an actor with the parameters `one` and `two` that asks for its key and calls.

    Parameters:
        call: the call, given the key; in a thread of its own if the actor is an `async def`.
        before: called before the actor asks for its key.
        write: what the actor writes in its own confirmation. Defaults to None: the kit confirms.
        result: what it keeps with it.
        reconcile: asks the provider, given the key.
        swallow: what the actor swallows of its confirmation. Defaults to nothing that comes.
        options: of the actor.
    """

    def act(one: str, two: str = "2") -> str:
        before(one)
        call(current_key())
        if write is not None:
            with suppress(swallow), effect(result=result) as session:
                write(session, one)
        return "done"

    async def act_async(one: str, two: str = "2") -> str:
        await asyncio.to_thread(before, one)
        await asyncio.to_thread(call, await current_key_async())
        if write is not None:
            with suppress(swallow):
                async with effect(result=result) as session:
                    await session.run_sync(write, one)
        return "done"

    def ask(one: str, two: str = "2") -> Any:
        assert reconcile is not None
        return reconcile(current_key())

    async def ask_async(one: str, two: str = "2") -> Any:
        assert reconcile is not None
        return await asyncio.to_thread(reconcile, await current_key_async())

    if reconcile is not None:
        options["reconcile"] = ask if jobs.kind == "def" else ask_async
    return jobs.declare(
        act if jobs.kind == "def" else act_async,
        **{"name": "act", "idempotency_key": KEY, "effect": "external", **options},
    )


def attempts(store: Store) -> list[tuple[int, str]]:
    """Return fence and state of every attempt."""
    return rows(store.engine, "SELECT fence, state FROM job_intents ORDER BY key, fence")


def unasked(_connect: Callable[[], Connection], _entry: Entry) -> None:
    """Take every job for one that is young."""


class Rival:
    """Another worker, which makes an attempt at the key of the job `a` and is seen no more.

    Parameters:
        jobs: whose actor it runs.
        lease: how long it is believed to be alive. Defaults to no time at all.
    """

    def __init__(self, jobs: KeyedJobs, lease: timedelta = timedelta(0)) -> None:
        (keyed,) = [each for each in jobs.ledger.actors if each.name == "act"]
        self.entry: Entry = keyed.entry(("a",), {}, "rival")
        self.intents = Intents(jobs.store, lease)
        taken = self.intents.take(self.entry, is_careful=False, prove=unasked)
        assert isinstance(taken, Taken)
        self.token = (self.entry.key, taken.fence)

    def ask(self) -> None:
        """Begin its call."""
        with self.intents.store.writing() as connection:
            _ask(connection, self.token)


def _ask(connection: Connection, token: tuple[str, int]) -> None:
    connection.exec_driver_sql(
        f"UPDATE job_intents SET asked_at = CURRENT_TIMESTAMP WHERE key = '{token[0]}' AND fence = {token[1]}"
    )


def lapse(jobs: KeyedJobs) -> None:
    """Let every lease run out, as if its worker had been frozen."""
    with jobs.store.writing() as connection:
        connection.exec_driver_sql("UPDATE job_intents SET lease_until = began_at")
