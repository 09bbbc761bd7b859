"""How is somebody told what became of the jobs that a command sent and runs itself?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from dramatiq import Message
from dramatiq.errors import Retry as RetryRequested

from ..durations import format_duration
from ..errors import JobFailure
from ..observe import Follower
from ..transport.evidence import describe, type_name
from ..transport.outcome import Completed, Dead, Discarded, Duplicate, Outcome, Retry, Returned, Snoozed


def follow(follower: Follower, sent: Iterable[Message[Any]], report: Callable[[str], None]) -> bool:
    """Report every outcome of these jobs until all of them have ended; return whether none of them died."""
    alive = True
    for delivery, outcome in follower.outcomes(sent):
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
