from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from middleware.failures.backoff import backoff

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
LONGEST_MS = 2**53  # that a message may carry
pauses = st.integers(min_value=0, max_value=LONGEST_MS).map(lambda ms: timedelta(milliseconds=ms))


@given(st.integers(min_value=0, max_value=2**31), pauses, pauses)
def test_a_pause_is_never_longer_than_the_longest(retries: int, least: timedelta, most: timedelta) -> None:
    """However often and whatever the bounds, the pause stays below the longest; nothing overflows."""
    assert timedelta(0) <= backoff(retries, least, most) <= most


@given(st.integers(min_value=0, max_value=10))
def test_a_pause_doubles_with_each_retry(retries: int) -> None:
    """The pause lies between the doubled pause and twice as much."""
    base = SECOND * 2**retries
    assert backoff(retries, SECOND, HOUR, min) == base
    assert backoff(retries, SECOND, HOUR, max) == 2 * base


def test_a_pause_at_the_bound_is_spread_too() -> None:
    """At the bound pauses are spread over its upper half, so that failures do not come back together."""
    assert backoff(30, SECOND, HOUR, min) == HOUR / 2
    assert backoff(30, SECOND, HOUR, max) == HOUR


def test_pauses_differ() -> None:
    """Two jobs that fail at the same moment do not come back at the same moment."""
    assert len({backoff(3, SECOND, HOUR) for _ in range(20)}) > 1


def test_no_pause_means_none() -> None:
    """A bound of zero is a pause of zero."""
    assert backoff(5, SECOND, timedelta(0)) == timedelta(0)
    assert backoff(5, timedelta(0), HOUR) == timedelta(0)
