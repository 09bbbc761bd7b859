"""How does a coroutine send a job? As anybody else does, but awaiting the confirm instead of blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

import dramatiq
from dramatiq import Actor, Message

from .enqueueing import EnqueueingBroker

P = ParamSpec("P")
R = TypeVar("R")

_MS = timedelta(milliseconds=1)


async def send_async(actor: Actor[P, R], *args: P.args, **kwargs: P.kwargs) -> Message[R]:
    """Send a job and await the broker's confirm: `await send_async(charge_credit, "t1", "m1")`.

    Parameters:
        actor: of the kit's broker.
        args: the job's positional arguments.
        kwargs: the job's keyword arguments.

    Returns:
        The message; the broker has it on disk.

    Raises:
        NotEnqueued: the job is certainly not stored; its subclasses say what is wrong with it.
        EnqueueUnknown: the job may be stored: repeat only with an idempotency key.
        asyncio.CancelledError: the coroutine was cancelled; the job may be stored.
    """
    return await send_with_options_async(actor, args=args, kwargs=kwargs)


async def send_with_options_async(
    actor: Actor[..., R],
    *,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    delay: timedelta | int | None = None,
    **options: Any,
) -> Message[R]:
    """Send a job with options, as `actor.send_with_options(…)`, and await the broker's confirm.

    Parameters:
        actor: of the kit's broker.
        args: the job's positional arguments. Defaults to none.
        kwargs: the job's keyword arguments. Defaults to none.
        delay: until it is due, a timedelta or milliseconds. Defaults to None: now.
        options: of the message, such as `max_retries`.

    Returns:
        The message; the broker has it on disk.

    Raises:
        NotEnqueued, EnqueueUnknown, asyncio.CancelledError: as `send_async`.
    """
    message = actor.message_with_options(args=args, kwargs=dict(kwargs or {}), **options)
    return await _kits(actor.broker).enqueue_async(message, delay=_milliseconds(delay))


async def enqueue_many_async(
    messages: Sequence[Message[Any]], *, delay: timedelta | int | None = None
) -> list[Message[Any]]:
    """Publish many jobs of the global broker at once and await the confirms.

    Parameters:
        messages: the jobs, as `actor.message(…)` makes them; all are checked before the first is published.
        delay: until they are due, a timedelta or milliseconds. Defaults to None: now.

    Returns:
        The messages, all stored.

    Raises:
        NotEnqueued, EnqueueUnknown: as `send_async`; `refused` and `unknown` list the jobs concerned.
        asyncio.CancelledError: the coroutine was cancelled; any of the jobs may be stored.
    """
    return await _kits(dramatiq.get_broker()).enqueue_many_async(messages, delay_ms=_milliseconds(delay))


def _kits(broker: dramatiq.Broker) -> EnqueueingBroker:
    if not isinstance(broker, EnqueueingBroker):
        raise TypeError(
            f"expected the broker to be a QuorumBroker or an InlineBroker, got: {type(broker).__name__}, "
            "which cannot await a confirm; set one of the kit's, or call send() in a thread"
        )
    return broker


def _milliseconds(delay: timedelta | int | None) -> int | None:
    return delay // _MS if isinstance(delay, timedelta) else delay
