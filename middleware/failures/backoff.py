"""How long until the next attempt? Pure arithmetic, apart from the jitter's dice."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Final

_LARGEST_EXPONENT: Final = 64
_LONGEST: Final = timedelta(days=36500)
"""More than anything that is compared with it, and far from a timedelta's own end."""


def backoff(
    retries: int,
    least: timedelta,
    most: timedelta,
    uniform: Callable[[float, float], float] = random.uniform,
) -> timedelta:
    """Return the pause before the next attempt: exponential, with jitter so that failures spread out.

    Parameters:
        retries: how many retries there were, 0 after the first attempt.
        least: the pause after the first attempt; doubled with each retry.
        most: the longest pause.
        uniform: the dice, for tests.

    >>> backoff(0, timedelta(seconds=1), timedelta(hours=1), max).total_seconds()
    2.0
    >>> backoff(20, timedelta(seconds=1), timedelta(hours=1), min).total_seconds()
    1800.0
    """
    # In seconds as float: a timedelta overflows long before the doubling reaches its bound.
    base = least.total_seconds() * 2.0 ** min(retries, _LARGEST_EXPONENT)
    if base * 2 > most.total_seconds():
        return most * uniform(0.5, 1)
    return timedelta(seconds=base * uniform(1, 2))


def longest(retries: int, least: timedelta, most: timedelta) -> timedelta:
    """Return how long all pauses of so many retries may be together, at most.

    >>> longest(3, timedelta(seconds=1), timedelta(hours=1)).total_seconds()
    14.0
    >>> longest(12, timedelta(seconds=1), timedelta(hours=1)).total_seconds()
    7694.0
    """
    doubling = [2 * least.total_seconds() * 2.0**each for each in range(min(retries, _LARGEST_EXPONENT + 1))]
    seconds = sum(min(each, most.total_seconds()) for each in doubling)
    seconds += max(0, retries - len(doubling)) * most.total_seconds()
    return timedelta(seconds=min(seconds, _LONGEST.total_seconds()))
