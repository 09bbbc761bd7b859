"""What is one publish, and how did it end?"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

READY: Final = "ready"
DELAYED: Final = "delayed"
DEAD: Final = "dead"
_NO_HEADERS: Final[Mapping[str, Any]] = MappingProxyType({})


class Publication(NamedTuple):
    """A message on its way to a queue, its ladder, or its dead letters.

    Attributes:
        queue: canonical queue name.
        place: ready, delayed or dead.
        body: the bytes of the message.
        message_id: the job's id; shown in RabbitMQ's tools.
        actor: the actor's name; the AMQP type.
        timestamp: unix seconds when the job was first enqueued.
        headers: the kit's headers, within the header budget.
        ticks: the delay, for `delayed`.
        alone: publish it with nothing else in flight, because the broker may refuse it.
    """

    queue: str
    place: str
    body: bytes
    message_id: str
    actor: str = ""
    timestamp: int = 0
    headers: Mapping[str, Any] = _NO_HEADERS
    ticks: int = 0
    alone: bool = False


class Result(enum.Enum):
    """How a publish ended."""

    CONFIRMED = "confirmed"
    REFUSED = "refused"
    """Certainly not stored."""
    UNKNOWN = "unknown"
    """Written, but no confirm came: may be stored."""


class Ticket:
    """One publication's way through the publisher.

    Attributes:
        wanted: asked just before it is written; when it says no, nothing is published.
        result: None until it ended.
        reason: why it was refused or is unknown.
    """

    __slots__ = ("claimed", "done", "publication", "reason", "redeclared", "result", "returned", "wanted")

    def __init__(
        self,
        publication: Publication,
        done: Callable[[Ticket], None],
        wanted: Callable[[], bool] | None = None,
    ) -> None:
        self.publication = publication
        self.done = done
        self.wanted = wanted
        self.result: Result | None = None
        self.reason = ""
        self.claimed = threading.Lock()
        """Held by whoever decides first: the publisher that writes it, or the caller that gives up."""
        self.returned = False
        self.redeclared = False

    def claim(self) -> bool:
        """Take the ticket to write it; False if its sender gave up. One redeclared for stays taken."""
        if self.result is not None:
            return False
        return self.redeclared or self.claimed.acquire(blocking=False)

    def release(self) -> None:
        """Give the claim back: it was not written after all."""
        if not self.redeclared and self.claimed.locked():
            self.claimed.release()

    @property
    def is_abandoned(self) -> bool:
        """Whether, while it waits to be written, its sender has given up."""
        return self.result is not None or (self.claimed.locked() and not self.redeclared)

    def end(self, result: Result, reason: str = "") -> None:
        """Record how it ended and tell the caller; later ends change nothing."""
        if self.result is None:
            self.result = result
            self.reason = reason
            self.done(self)
