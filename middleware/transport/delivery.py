"""What does a worker thread hold while it runs a job?

A `Delivery` is Dramatiq's message proxy plus what the kit has to know about this one delivery: the
channel it came from, its bytes as they came, what earlier attempts left, and how it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Protocol

from dramatiq import Message
from dramatiq.broker import MessageProxy

from .evidence import Evidence
from .outcome import Outcome


class Link(Protocol):
    """The channel that delivered; an acknowledgement belongs to it and to no other."""

    @property
    def alive(self) -> bool:
        """Whether the broker still counts this channel's deliveries as ours."""
        ...

    def ack(self, tag: int) -> None:
        """Remove the delivery from its queue. Never raises; nothing happens on a dead channel."""
        ...

    def requeue(self, tag: int) -> None:
        """Give the delivery back to its queue. Never raises."""
        ...

    def reject(self, tag: int) -> None:
        """Let the broker dead-letter the delivery natively. Never raises."""
        ...


class Delivery(MessageProxy):
    """One delivery of one job.

    Attributes:
        link: the channel that delivered.
        tag: the delivery tag on that channel.
        body: the message as it came off the wire, byte for byte.
        evidence: attempt number and history of earlier attempts.
        outcome: how the delivery ended, None while it is not decided.
        follow_ups: messages to publish before the acknowledgement, with their delays in milliseconds.
        is_followed: what follows the job's success is stored already, or nothing does.
        is_freed: the job's `job_id` is free already, or stays taken.
        after_confirm: called when what leads away from the worker was confirmed, by whoever has the
            publisher's turn; must not block.
        thread_id: the worker thread that runs the job, 0 before it starts.
        armed: what may interrupt the job, None before it starts; an actor that calls another one directly
            has one time limit.
    """

    def __init__(
        self,
        message: Message[Any],
        *,
        link: Link,
        tag: int,
        body: bytes,
        evidence: Evidence,
        redelivered: bool = False,
    ) -> None:
        super().__init__(message)
        # Instance attributes, because the proxy's __getattr__ costs a lookup on every access.
        self.queue_name = message.queue_name
        self.actor_name = message.actor_name
        self.args = message.args
        self.kwargs = message.kwargs
        self.options = message.options
        self.message_id = message.message_id
        self.message_timestamp = message.message_timestamp
        self.link = link
        self.tag = tag
        self.body = body
        self.evidence = evidence
        self.redelivered = redelivered
        self.outcome: Outcome | None = None
        self.follow_ups: list[tuple[Message[Any], int | None]] = []
        self.is_followed = False
        self.is_freed = False
        self.after_confirm: Callable[[], None] | None = None
        self.thread_id = 0
        self.armed: Any = None

    @property
    def attempt(self) -> int:
        """The number of this attempt, counted from 1."""
        return self.evidence.attempt

    @property
    def exception(self) -> BaseException | None:
        """The exception that Dramatiq stuffed into the message, if any."""
        return self._exception


_current: Final[ContextVar[Delivery | None]] = ContextVar("jobs_current_delivery", default=None)


def current_delivery() -> Delivery | None:
    """Return the delivery that this thread, or this async actor, is processing; None outside a job.

    A context variable: an async actor runs in a copy of the worker thread's context, a thread that an
    actor starts by itself does not inherit it.
    """
    return _current.get()


def set_current_delivery(delivery: Delivery | None) -> None:
    """Record which delivery this thread processes; the broker calls it around each job."""
    _current.set(delivery)
