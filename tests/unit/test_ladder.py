from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.transport.ladder import TICK, bits_low_first, levels_for, round_up, ticks_for, top_level

MONTH = timedelta(days=30)
delays = st.timedeltas(min_value=timedelta(microseconds=1), max_value=MONTH)
ticks = st.integers(min_value=1, max_value=MONTH // TICK)


@given(delays)
def test_a_delay_is_never_shortened_and_rounded_by_less_than_a_tick_and_a_millisecond(
    delay: timedelta,
) -> None:
    """A delay waits at least as long as asked, and less than one tick longer."""
    waited = ticks_for(delay) * TICK
    assert delay <= waited < delay + TICK + timedelta(milliseconds=1)


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=-5), timedelta(microseconds=1)])
def test_there_is_no_shorter_delay_than_a_tick(delay: timedelta) -> None:
    """What is shorter than a tick waits one tick."""
    assert ticks_for(delay) == 1


@given(ticks)
def test_the_set_bits_add_up_to_the_delay(count: int) -> None:
    """The levels where a message stops hold it for its delay together, and it begins at the highest."""
    bits = bits_low_first(count)
    assert sum(bit << level for level, bit in enumerate(bits)) == count
    assert top_level(count) == len(bits) - 1
    assert bits[-1] == 1


@given(ticks)
def test_a_computed_delay_stops_four_times_at_most_and_is_an_eighth_longer_at_most(count: int) -> None:
    """Rounding up bounds the stops and what they cost."""
    rounded = round_up(count)
    assert rounded.bit_count() <= 4
    assert count <= rounded <= count * 1.125


@given(delays)
def test_the_longest_delay_fits_its_ladder(longest: timedelta) -> None:
    """A ladder for delays up to some length holds that length."""
    assert top_level(ticks_for(longest)) < levels_for(longest)
