"""When are settled deliveries sent?"""

from __future__ import annotations

import pytest

from middleware.transport.gathering import GATHER_SECONDS, IDLE, Gathering


def test_the_first_after_a_while_is_sent_at_once() -> None:
    """What is settled while nothing was sent for a while does not wait."""
    gathering = Gathering(prefetch=48)
    assert gathering.seconds_left(1, now=0.0) == 0.0
    gathering.sent(now=100.0)
    assert gathering.seconds_left(1, now=100.0 + GATHER_SECONDS) == 0.0


def test_under_load_they_wait_for_each_other() -> None:
    """What is settled soon after the last frame waits for the rest of the time, and for no longer."""
    gathering = Gathering(prefetch=48)
    gathering.sent(now=100.0)
    assert gathering.seconds_left(1, now=100.0) == pytest.approx(GATHER_SECONDS)
    assert 0 < gathering.seconds_left(11, now=100.0 + GATHER_SECONDS / 2) < GATHER_SECONDS


def test_a_fourth_of_the_prefetch_does_not_wait() -> None:
    """So many settled deliveries are sent at once, before the threads run out of work."""
    gathering = Gathering(prefetch=48)
    gathering.sent(now=100.0)
    assert gathering.seconds_left(12, now=100.0) == 0.0


@pytest.mark.parametrize("prefetch", [1, 2, 7])
def test_a_small_prefetch_never_waits(prefetch: int) -> None:
    """A queue that hands out few jobs at a time gets each back at once: the next one waits for it."""
    gathering = Gathering(prefetch)
    gathering.sent(now=100.0)
    assert gathering.seconds_left(1, now=100.0) == 0.0


def test_nothing_settled_waits_for_nothing() -> None:
    """Without settled deliveries there is no deadline."""
    assert Gathering(prefetch=48).seconds_left(0, now=100.0) == IDLE
