"""Actors that charge a provider which nobody asks afterwards: `dramatiq tests.acceptance.paying`.

Each notes `began` before it asks for its key, and may be held there.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import dramatiq
import httpx
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

import jobs  # noqa: F401  # sets the broker
from jobs.models import CreditEntry
from middleware import current_key, current_key_async, current_session, effect
from middleware.transport.delivery import current_delivery

from .seen import Gates, Seen

_FOLDER: Final = Path(os.environ["PROBE_FOLDER"])
_seen: Final = Seen(_FOLDER)
_gates: Final = Gates(_FOLDER)
_CHARGES: Final = f"{os.environ.get('PAYMENTS_URL', '')}/charges"
_TIMEOUT_SECONDS: Final = 60.0


def _begin(name: str) -> None:
    delivery = current_delivery()
    _seen.note("began", name, delivery.attempt if delivery is not None else 0)


def _entry(name: str) -> Any:
    return insert(CreditEntry).values(reference=name, account_id=str(os.getpid()), amount=1)


@dramatiq.actor(queue_name="critical", idempotency_key="pay:{name}", effect="external")
def pay(name: str, gate: str = "") -> None:
    """Charge; the kit confirms."""
    _begin(name)
    if gate:
        _gates.wait(gate)
    key = current_key()
    httpx.post(_CHARGES, json={"amount": 1}, headers={"Idempotency-Key": key}, timeout=_TIMEOUT_SECONDS)


@dramatiq.actor(queue_name="critical", idempotency_key="pay-async:{name}", effect="external")
async def pay_async(name: str, gate: str = "") -> None:
    """Do the same on the event loop."""
    _begin(name)
    while gate and not _gates.is_open(gate):
        await asyncio.sleep(0.02)
    key = await current_key_async()
    async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS) as client:
        await client.post(_CHARGES, json={"amount": 1}, headers={"Idempotency-Key": key})


@dramatiq.actor(
    queue_name="critical", idempotency_key="pay-again:{name}", effect="external", on_unknown="retry"
)
def pay_again(name: str) -> None:
    """Charge, again if need be, and write a row that names the process."""
    _begin(name)
    key = current_key()
    httpx.post(_CHARGES, json={"amount": 1}, headers={"Idempotency-Key": key}, timeout=_TIMEOUT_SECONDS)
    with effect() as session:
        session.execute(_entry(name))


@dramatiq.actor(queue_name="critical", idempotency_key="swallow:{name}", max_retries=0)
def swallow(name: str) -> None:
    """Write a row twice in the actor's transaction, and swallow the error."""
    _write_twice(current_session(), name)


@dramatiq.actor(queue_name="critical", idempotency_key="swallow-late:{name}", effect="late", max_retries=0)
def swallow_late(name: str) -> None:
    """Do so at the end of a computation."""
    with effect() as session:
        _write_twice(session, name)


@dramatiq.actor(queue_name="critical", idempotency_key="swallow-external:{name}", effect="external")
def swallow_external(name: str) -> None:
    """Do so with a confirmation."""
    with effect() as session:
        _write_twice(session, name)


def _write_twice(session: Any, name: str) -> None:
    session.execute(_entry(name))
    try:
        session.execute(_entry(name))
    except IntegrityError:
        _seen.note("swallowed", name, 1)
