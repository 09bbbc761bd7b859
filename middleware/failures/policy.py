"""What happens after a failure: another attempt, when, or a dead letter? Pure; settlement acts on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dramatiq.errors import Retry as RetryRequested

from ..errors import Snooze, UnknownOutcome
from ..transport.outcome import RETURNED, Dead, Outcome, Retry, Snoozed
from .backoff import backoff, longest
from .classify import classify


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The options that decide about retries; names and meaning are Dramatiq's.

    Parameters:
        max_retries: attempts after the first; 0 means none, None means no bound.
        min_backoff: pause after the first attempt.
        max_backoff: longest pause.
        retry_when: asked instead of `max_retries` when set: called with retries so far and the exception.
    """

    max_retries: int | None
    min_backoff: timedelta
    max_backoff: timedelta
    retry_when: Callable[[int, BaseException], bool] | None = None

    def merged(self, *options: Mapping[str, Any]) -> RetryPolicy:
        """Return the policy with options laid over it, the later the stronger; None is a value."""
        merged: dict[str, Any] = {}
        for each in options:
            merged.update({name: each[name] for name in _NAMES if name in each})
        if not merged:
            return self
        return RetryPolicy(
            max_retries=merged.get("max_retries", self.max_retries),
            min_backoff=_duration(merged.get("min_backoff"), self.min_backoff),
            max_backoff=_duration(merged.get("max_backoff"), self.max_backoff),
            retry_when=merged.get("retry_when") or self.retry_when,
        )

    def window(self, attempt: timedelta) -> timedelta | None:
        """Return how long a job's attempts and the pauses between them may take; None if that has no bound.

        Parameters:
            attempt: how long each may take.
        """
        if self.max_retries is None or self.retry_when is not None:
            return None
        pauses = longest(self.max_retries, self.min_backoff, self.max_backoff)
        # The ladder rounds computed delays up, by an eighth at most.
        return pauses * 9 / 8 + min(self.max_retries + 1, _MOST_ATTEMPTS) * attempt


_MOST_ATTEMPTS = 10**6
_NAMES = ("max_retries", "min_backoff", "max_backoff", "retry_when")


def _duration(ms: int | None, default: timedelta) -> timedelta:
    return default if ms is None else timedelta(milliseconds=ms)


def decide(
    error: BaseException,
    *,
    retries: int,
    policy: RetryPolicy,
    throws: Any = None,
    is_shut_down: bool = False,
) -> Outcome:
    """Return what a failed attempt leads to.

    Parameters:
        error: what the attempt raised.
        retries: how many retries there were before this attempt failed.
        policy: the actor's retry policy.
        throws: exceptions that the actor declared as final.
        is_shut_down: whether the job was interrupted because its worker is told to stop.
    """
    if isinstance(error, Snooze):
        return Snoozed(error.delay, str(error))
    if is_shut_down:
        return RETURNED
    kind = classify(error, throws)
    is_retried = error.is_retried if isinstance(error, UnknownOutcome) else kind.is_retried
    if not is_retried or not _allows(policy, retries, error):
        return Dead(kind, error)
    if isinstance(error, RetryRequested) and error.delay is not None:
        return Retry(kind, error, timedelta(milliseconds=error.delay), exact=True)
    return Retry(kind, error, backoff(retries, policy.min_backoff, policy.max_backoff))


def _allows(policy: RetryPolicy, retries: int, error: BaseException) -> bool:
    if policy.retry_when is not None:
        return bool(policy.retry_when(retries, error))
    return policy.max_retries is None or retries < policy.max_retries
