"""How does somebody who writes to the database enqueue a job in the same transaction?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

import dramatiq
from dramatiq import Message
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from ..errors import NotEnqueued
from ..transport.broker import JobBroker
from .ledger import Ledger

R = TypeVar("R")
AnySession: TypeAlias = Session | scoped_session[Any]
AnyAsyncSession: TypeAlias = AsyncSession | async_scoped_session[Any]

_MS: Final = timedelta(milliseconds=1)


def enqueue(
    session: AnySession,
    message: Message[R],
    job_id: str | None = None,
    *,
    job_mode: str | None = None,
    job_window: timedelta | int | None = None,
    delay: timedelta | int | None = None,
    broker: JobBroker | None = None,
) -> Message[R]:
    """Enqueue a job in a transaction: it is sent if that commits, and never if it does not.

    ::

        with Session.begin() as session:
            session.add(order)
            enqueue(session, charge_credit.message("t1", "m1"))

    Nothing is sent to the broker, or to the database, by this call, unless the job has a `job_id`: the job is
    written with the session's next flush and published after the commit, which does not wait for it. A broker
    that is away holds up neither.

    Parameters:
        session: of the database that holds the kit's tables.
        message: the job, as `actor.message(…)` makes it.
        job_id: names the job, so that another submission of it is found while this one is unfinished.
        Defaults to
            None: every message is a job of its own.
        job_mode: what becomes of another submission: `drop`, `throttle`, `debounce`, `replace` or
        `keep_last`.
            Defaults to `drop`.
        job_window: of `throttle`, for how long no other submission is taken; a timedelta or milliseconds.
        delay: until it is due, a timedelta or milliseconds, counted from this call. Defaults to None: now.
        broker: one of the kit's, whose middleware has a `Ledger`. Defaults to Dramatiq's global one.

    Returns:
        The message that carries the job: the first submission's, if this one was dropped.

    Raises:
        NotEnqueued: it cannot be sent; its subclasses say what is wrong with it. `OutboxFull`: too many wait.
    """
    message = _submission(message, job_id, job_mode, job_window)
    return enqueue_all(session, [message], delay=delay, broker=broker)[0]


def enqueue_all(
    session: AnySession,
    messages: Sequence[Message[Any]],
    *,
    delay: timedelta | int | None = None,
    broker: JobBroker | None = None,
) -> list[Message[Any]]:
    """Enqueue many jobs in a transaction; all are checked before the first is written. See `enqueue`.

    A `job_id` is an option of the message: `actor.message_with_options(…, job_id=…)`.
    """
    within: object = session() if isinstance(session, scoped_session) else session
    if not isinstance(within, Session):
        raise TypeError(
            f"expected session to be a Session, got: {type(within).__name__}; with an AsyncSession, "
            "await enqueue_async(…) or enqueue_all_async(…)"
        )
    return _enqueue_all(within, messages, delay, broker)


async def enqueue_async(
    session: AnyAsyncSession,
    message: Message[R],
    job_id: str | None = None,
    *,
    job_mode: str | None = None,
    job_window: timedelta | int | None = None,
    delay: timedelta | int | None = None,
    broker: JobBroker | None = None,
) -> Message[R]:
    """Enqueue a job in the transaction of an AsyncSession. See `enqueue`."""
    message = _submission(message, job_id, job_mode, job_window)
    return (await enqueue_all_async(session, [message], delay=delay, broker=broker))[0]


async def enqueue_all_async(
    session: AnyAsyncSession,
    messages: Sequence[Message[Any]],
    *,
    delay: timedelta | int | None = None,
    broker: JobBroker | None = None,
) -> list[Message[Any]]:
    """Enqueue many jobs in the transaction of an AsyncSession. See `enqueue_all`."""
    within: object = session() if isinstance(session, async_scoped_session) else session
    if not isinstance(within, AsyncSession):
        raise TypeError(
            f"expected session to be an AsyncSession, got: {type(within).__name__}; with a Session, "
            "call enqueue(…) or enqueue_all(…)"
        )
    return await within.run_sync(_enqueue_all, messages, delay, broker)


def _submission(
    message: Message[R], job_id: str | None, mode: str | None, window: timedelta | int | None
) -> Message[R]:
    said = {"job_id": job_id, "job_mode": mode, "job_window": _milliseconds(window)}
    options = {name: value for name, value in said.items() if value is not None}
    return message.copy(options=options) if options else message


def _enqueue_all(
    session: Session,
    messages: Sequence[Message[Any]],
    delay: timedelta | int | None,
    broker: JobBroker | None,
) -> list[Message[Any]]:
    messages = list(messages)
    for message in messages:
        if not isinstance(message, Message):
            raise TypeError(
                f"expected message to be a Message, got: {type(message).__name__}; "
                "make it with actor.message(…)"
            )
    chosen = dramatiq.get_broker() if broker is None else broker
    outbox = Ledger.of(chosen).outbox
    assert isinstance(chosen, JobBroker)
    outbox.check(session)
    delay_ms = _milliseconds(delay)
    publications = chosen.checked(messages, delay_ms)
    try:
        taken = outbox.take(session, chosen, messages, publications, delay_ms)
    except NotEnqueued as error:
        error.refused = list(messages)
        raise
    chosen.announce(taken, delay_ms)
    return taken


def _milliseconds(duration: timedelta | int | None) -> int | None:
    return duration // _MS if isinstance(duration, timedelta) else duration
