"""Actors whose every start and end can be seen from outside, and held or made to fail: loaded by workers.

`dramatiq jobs tests.acceptance.probes` runs them beside the application's. What they did is in the files that
PROBE_FOLDER holds, one line an event, so that a SIGKILL loses none of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import dramatiq
from dramatiq import Broker
from dramatiq.broker import MessageProxy
from dramatiq.middleware import Middleware
from sqlalchemy import insert

import jobs  # noqa: F401  # sets the broker
from jobs.models import CreditEntry
from middleware import BusinessReject, current_async_session
from middleware.transport.delivery import current_delivery

from .seen import Gates, Seen

_FOLDER: Final = Path(os.environ["PROBE_FOLDER"])
_seen: Final = Seen(_FOLDER)
_gates: Final = Gates(_FOLDER)


def _act(
    name: str, *, gates: Sequence[str] = (), failures: int = 0, rejections: int = 0, depth: int = 0
) -> None:
    delivery = current_delivery()
    attempt = delivery.attempt if delivery is not None else 0
    _seen.note("began", name, attempt)
    run = _seen.count("began", name) if gates or rejections else 1
    if gates:
        _gates.wait(gates[min(run, len(gates)) - 1])
    if run <= rejections:
        _seen.note("rejected", name, attempt)
        raise BusinessReject(f"{name} is rejected")
    if attempt <= failures:
        _seen.note("failed", name, attempt)
        _fail(name, depth)
    _seen.note("ended", name, attempt)


def _fail(name: str, depth: int) -> None:
    """Fail with a traceback of many frames and, with each, a message of a kilobyte."""
    try:
        if depth:
            _fail(name, depth - 1)
    except RuntimeError as error:
        raise RuntimeError(f"{name} fails: {'long ' * 200}") from error
    raise RuntimeError(f"{name} fails")


@dramatiq.actor(queue_name="critical", min_backoff=100, max_backoff=200, max_retries=3)
def probe_critical(name: str, **behaviour: Any) -> None:
    """Note the start and, unless it fails, the end.

    Parameters:
        name: what this job is called in the notes.
        gates: which gate the first, the second, … run waits at; the last one holds for all further runs.
        failures: how many attempts fail.
        rejections: how many runs end in a business rule's refusal.
        depth: frames of the traceback of a failure.
        padding: makes the message larger.
    """
    _act(name, **{key: value for key, value in behaviour.items() if key != "padding"})


@dramatiq.actor(queue_name="llm")
def probe_llm(name: str) -> None:
    """Do the same on another queue."""
    _act(name)


@dramatiq.actor(queue_name="critical", idempotency_key="probe:{name}")
async def probe_async(name: str, gate: str) -> None:
    """Write a row of the ledger's transaction, then wait at a gate; note a cancellation after cleaning up."""
    delivery = current_delivery()
    attempt = delivery.attempt if delivery is not None else 0
    entry = {"reference": name, "account_id": "probe", "amount": 1}
    await current_async_session().execute(insert(CreditEntry).values(entry))
    _seen.note("began", name, attempt)
    try:
        while not _gates.is_open(gate):
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        _seen.note("cancelled", name, attempt)
        raise
    _seen.note("ended", name, attempt)


@dramatiq.actor(queue_name="critical", idempotency_key="probe-next:{name}")
def probe_next(name: str, result: Any = None) -> None:
    """Follow another job as the next step of its pipeline."""
    _act(name)


class DieAfterCommit(Middleware):
    """Kills this process once, between the commit of a charge and its acknowledgement."""

    def after_process_message(
        self,
        broker: Broker,
        message: MessageProxy,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """Die, if this is the first charge."""
        if message.actor_name == "charge_credit" and exception is None and not _seen.count("died", "worker"):
            _seen.note("died", "worker", 0)
            os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("PROBE_DIES_AFTER_COMMIT"):
    dramatiq.get_broker().add_middleware(DieAfterCommit())
