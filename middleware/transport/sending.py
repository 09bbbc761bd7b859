"""How does a sender wait for the confirm, and which error says what is certain?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from dramatiq import Message

from ..errors import EnqueueError, EnqueueUnknown, NotEnqueued
from .publication import Publication, Result, Ticket


class Outbound(Protocol):
    """What takes publications: the publisher, or the inline broker's memory."""

    @property
    def problem(self) -> str:
        """Why nothing is being published now; empty if nothing is known to be wrong."""
        ...

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Take tickets and end each."""
        ...

    def drive(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        """Take tickets and end each on the caller's own thread; False if that cannot be done now."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Run a callable after a while."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class Progress:
    """How many tickets of one send have not ended, and since when none has.

    Attributes:
        left: how many have not; counted by whoever has the publisher's turn, one thread at a time.
    """

    def __init__(self, count: int) -> None:
        self.left = count
        self._moved_at = time.monotonic()

    def __call__(self, _ticket: Ticket) -> None:
        self.left -= 1
        self._moved_at = time.monotonic()
        if self.left == 0:
            self.all_ended()

    def all_ended(self) -> None:
        """Tell the sender."""
        raise NotImplementedError

    def seconds_left(self, patience: float) -> float:
        """Return how long it is until none has ended for `patience` seconds."""
        return max(0.0, self._moved_at + patience - time.monotonic())


class Countdown(Progress):
    """Lets one thread wait until a number of tickets ended."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._lock = threading.Lock()
        self._lock.acquire()

    def all_ended(self) -> None:
        """Wake the thread."""
        self._lock.release()

    def wait(self, patience: float) -> bool:
        """Return whether all ended; gives up when none did for `patience` seconds."""
        while not self._lock.acquire(timeout=self.seconds_left(patience)):
            if not self.seconds_left(patience):
                return False
        return True


def send(
    outbound: Outbound,
    messages: Sequence[Message[Any]],
    publications: Sequence[Publication],
    timeout: timedelta,
) -> None:
    """Publish and wait for the confirms.

    Parameters:
        outbound: takes the publications.
        messages: what they publish, in the same order; named in errors.
        publications: what to publish.
        timeout: give up when no confirm came for so long.

    Raises:
        NotEnqueued: what is missing is certainly not stored.
        EnqueueUnknown: at least one message may be stored or not.
    """
    patience = timeout.total_seconds()
    countdown = Countdown(len(publications))
    tickets = [Ticket(publication, countdown) for publication in publications]
    if not outbound.drive(tickets, countdown, patience):
        outbound.submit(tickets)
    if not countdown.wait(patience):
        give_up(tickets, timeout, outbound.problem)
    raise_unless_confirmed(messages, tickets)


def give_up(tickets: Sequence[Ticket], timeout: timedelta, problem: str) -> None:
    """End what has not ended: nobody waits for it any more, and what is not written never will be.

    Parameters:
        tickets: of one send.
        timeout: how long their sender has waited.
        problem: why nothing is being published, if that is known.
    """
    for ticket in tickets:
        _give_up(ticket, timeout, problem)


def raise_unless_confirmed(messages: Sequence[Message[Any]], tickets: Sequence[Ticket]) -> None:
    """Raise what a sender has to know, unless every ticket was confirmed.

    Raises:
        NotEnqueued, EnqueueUnknown: as `send`.
    """
    # Once: a confirm that arrives after the sender gave up changes a ticket, but not what is said of it.
    results = [ticket.result for ticket in tickets]
    if any(result is not Result.CONFIRMED for result in results):
        raise _error(messages, tickets, results)


def _give_up(ticket: Ticket, timeout: timedelta, problem: str) -> None:
    seconds = f"{timeout.total_seconds():g} s"
    if ticket.result is not None:
        return
    if ticket.claimed.acquire(blocking=False):
        ticket.reason = f"not written within {seconds}: {problem or 'the publisher is busy'}"
        ticket.result = Result.REFUSED
    elif ticket.result is None:
        ticket.reason = f"no confirm within {seconds}{': ' + problem if problem else ''}"
        ticket.result = Result.UNKNOWN


def _error(
    messages: Sequence[Message[Any]], tickets: Sequence[Ticket], results: Sequence[Result | None]
) -> EnqueueError:
    refused = [m for m, result in zip(messages, results, strict=True) if result is Result.REFUSED]
    unknown = [m for m, result in zip(messages, results, strict=True) if result is Result.UNKNOWN]
    worst = Result.UNKNOWN if unknown else Result.REFUSED
    reason = tickets[results.index(worst)].reason
    what = (
        messages[0].message_id if len(messages) == 1 else f"{len(refused) + len(unknown)} of {len(messages)}"
    )
    if unknown:
        text = f"message {what}: may be stored or not; repeat only with an idempotency key ({reason})"
        return EnqueueUnknown(text, refused=refused, unknown=unknown)
    return NotEnqueued(f"message {what}: certainly not stored ({reason})", refused=refused)
