from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from dramatiq.errors import Retry as RetryRequested
from dramatiq.middleware import Shutdown, TimeLimitExceeded

from middleware import BusinessReject, Invalid, Snooze, UnknownOutcome
from middleware.failures.kinds import Kind
from middleware.failures.policy import RetryPolicy, decide
from middleware.transport.outcome import RETURNED, Dead, Retry, Snoozed

SECOND = timedelta(seconds=1)
POLICY = RetryPolicy(max_retries=2, min_backoff=SECOND, max_backoff=timedelta(minutes=1))


@pytest.mark.parametrize(("retries", "again"), [(0, True), (1, True), (2, False), (3, False)])
def test_retries_are_counted(retries: int, again: bool) -> None:
    """An error worth retrying is retried until there were `max_retries`."""
    error = RuntimeError("x")
    outcome = decide(error, retries=retries, policy=POLICY)
    if again:
        assert isinstance(outcome, Retry)
        assert outcome.kind == Kind.UNEXPECTED
        assert SECOND <= outcome.delay <= timedelta(minutes=1)
        assert not outcome.exact
    else:
        assert outcome == Dead(Kind.UNEXPECTED, error)


def test_an_unknown_outcome_is_retried_only_to_ask_again() -> None:
    """Without anybody to ask it is dead at once; with somebody, it is when the retries are used up."""
    assert decide(UnknownOutcome("x"), retries=0, policy=POLICY).name == "dead"
    askable = UnknownOutcome("x", is_retried=True)
    first, last = (decide(askable, retries=retries, policy=POLICY) for retries in (0, 2))
    assert isinstance(first, Retry)
    assert first.kind == Kind.UNKNOWN_OUTCOME
    assert last == Dead(Kind.UNKNOWN_OUTCOME, askable)


def test_zero_means_none_and_none_means_no_bound() -> None:
    """`max_retries=0` gives no second attempt, `max_retries=None` any number."""
    none = RetryPolicy(0, SECOND, SECOND)
    endless = RetryPolicy(None, SECOND, SECOND)
    assert isinstance(decide(RuntimeError(), retries=0, policy=none), Dead)
    assert isinstance(decide(RuntimeError(), retries=10_000, policy=endless), Retry)


@pytest.mark.parametrize("error", [Invalid("x"), BusinessReject("x")])
def test_what_cannot_succeed_is_dead_at_once(error: Exception) -> None:
    """A permanent error gets no retry, whatever the policy."""
    asked: list[Any] = []

    def always(*facts: Any) -> bool:
        asked.append(facts)
        return True

    policy = RetryPolicy(None, SECOND, SECOND, retry_when=always)
    assert isinstance(decide(error, retries=0, policy=policy), Dead)
    assert not asked


def test_what_the_actor_throws_is_dead_at_once() -> None:
    """`throws` makes an error final."""
    error = KeyError("x")
    assert decide(error, retries=0, policy=POLICY, throws=(KeyError,)) == Dead(Kind.PERMANENT, error)


def test_retry_when_decides_alone() -> None:
    """`retry_when` is asked with the count and the exception, and `max_retries` is not."""
    asked: list[tuple[int, BaseException]] = []

    def until_five(retries: int, error: BaseException) -> bool:
        asked.append((retries, error))
        return retries < 5

    policy = RetryPolicy(0, SECOND, SECOND, retry_when=until_five)
    error = RuntimeError()
    assert isinstance(decide(error, retries=4, policy=policy), Retry)
    assert isinstance(decide(error, retries=5, policy=policy), Dead)
    assert asked == [(4, error), (5, error)]


def test_a_delay_that_was_asked_for_is_kept() -> None:
    """`Retry(delay=…)` is the exact delay; without one there is a backoff."""
    asked = decide(RetryRequested("x", delay=1500), retries=0, policy=POLICY)
    assert isinstance(asked, Retry)
    assert (asked.delay, asked.exact) == (timedelta(milliseconds=1500), True)
    computed = decide(RetryRequested("x"), retries=0, policy=POLICY)
    assert isinstance(computed, Retry)
    assert not computed.exact
    assert isinstance(decide(RetryRequested("x", delay=1), retries=2, policy=POLICY), Dead)


def test_a_snooze_is_no_failure() -> None:
    """`Snooze` puts the job off, however many retries there were."""
    outcome = decide(Snooze(SECOND, "busy"), retries=99, policy=POLICY)
    assert outcome == Snoozed(SECOND, "busy")


def test_an_interrupt_of_the_shutdown_returns_the_job() -> None:
    """A job that was interrupted because the worker stops goes back to its queue."""
    assert decide(Shutdown(), retries=99, policy=POLICY, is_shut_down=True) is RETURNED


def test_a_time_limit_is_retried_as_a_timeout() -> None:
    """A job that ran into its time limit is a failure of kind timeout."""
    outcome = decide(TimeLimitExceeded(), retries=0, policy=POLICY)
    assert isinstance(outcome, Retry)
    assert outcome.kind == Kind.TIMEOUT


def test_options_are_laid_over_the_policy() -> None:
    """The message's options count before the actor's, and those before the policy; None is a value."""
    actor = {"max_retries": 7, "min_backoff": 2000, "unrelated": 1}
    merged = POLICY.merged(actor, {"max_retries": None, "max_backoff": 3000})
    assert merged == RetryPolicy(None, 2 * SECOND, 3 * SECOND)
    assert POLICY.merged({}, {"other": 1}) is POLICY
    assert POLICY.merged({"min_backoff": 0}).min_backoff == timedelta(0)
