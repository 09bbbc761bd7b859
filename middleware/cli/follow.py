"""How did the jobs end that this process sent and runs itself?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final

from dramatiq import Broker
from dramatiq.errors import Retry as RetryRequested
from dramatiq.middleware import Middleware

from ..durations import format_duration
from ..errors import JobFailure
from ..transport.broker import JobBroker
from ..transport.delivery import Delivery
from ..transport.evidence import describe, type_name
from ..transport.outcome import Completed, Dead, Discarded, Duplicate, Outcome, Retry, Returned, Snoozed
from .problems import CommandFailed

UNFINISHED: Final = (Retry, Snoozed, Returned)
"""Outcomes of a delivery that leave the job in the system."""


class Follower(Middleware):
    """Watches an inline broker's deliveries.

    Parameters:
        broker: the inline broker; the follower joins its middleware.
    """

    def __init__(self, broker: JobBroker) -> None:
        self._settled: SimpleQueue[tuple[Delivery, Outcome]] = SimpleQueue()
        broker.add_middleware(self)

    def after_ack(self, broker: Broker, message: Any) -> None:
        """Pass on what was settled; Dramatiq calls this once per delivery."""
        if isinstance(message, Delivery) and message.outcome is not None:
            self._settled.put((message, message.outcome))

    after_nack = after_ack

    def outcomes(self, jobs: int, patience: timedelta | None = None) -> Iterator[tuple[Delivery, Outcome]]:
        """Yield each delivery with its outcome as it is settled, until so many jobs have ended.

        Parameters:
            jobs: how many jobs to wait for.
            patience: how long to wait for the next outcome; None waits as long as it takes.

        Raises:
            CommandFailed: no delivery was settled for so long.
        """
        seconds = None if patience is None else patience.total_seconds()
        while jobs > 0:
            try:
                delivery, outcome = self._settled.get(timeout=seconds)
            except Empty:
                raise CommandFailed(
                    f"expected {jobs} more jobs to end, got: no outcome for {seconds:g} s"
                ) from None
            jobs -= not isinstance(outcome, UNFINISHED)
            yield delivery, outcome

    def wait(self, jobs: int, report: Callable[[str], None]) -> bool:
        """Report every outcome until so many jobs have ended; return whether none of them died."""
        alive = True
        for delivery, outcome in self.outcomes(jobs):
            report(f"{delivery.message_id} {tell(delivery.attempt, outcome)}")
            alive = alive and not isinstance(outcome, Dead)
        return alive


def tell(attempt: int, outcome: Outcome) -> str:
    """Return an outcome in words.

    >>> tell(1, Completed())
    'completed on attempt 1'
    """
    match outcome:
        case Completed():
            return f"completed on attempt {attempt}"
        case Duplicate():
            return "duplicate: its idempotency key was spent before, so nothing ran"
        case Discarded():
            return "discarded without a dead letter"
        case Returned():
            return "returned to its queue"
        case Snoozed(delay, reason):
            return f"put off for {_about(delay)}: {reason}"
        case Retry(kind, error, delay):
            return f"attempt {attempt} failed ({kind}: {_why(error)}), again in {_about(delay)}"
        case Dead(kind, error, reason):
            return f"dead letter after attempt {attempt} ({kind}: {reason or _why(error)})"


def _why(error: BaseException | None) -> str:
    if error is None:
        return "no exception"
    if isinstance(error, (JobFailure, RetryRequested)):  # raised on purpose: the text says it all
        return describe(error)
    return f"{type_name(error)}: {describe(error)}"


def _about(delay: timedelta) -> str:
    step = timedelta(milliseconds=100) if delay < timedelta(seconds=10) else timedelta(seconds=1)
    return format_duration(round(delay / step) * step)
