"""How does a job wait in the broker for seconds or for months?

Each queue has a ladder of waiting queues. Level N holds a message for tick × 2^N and hands it down. A
delay is written as a binary number of ticks; the message stops only at the levels whose bit is set, so
a delay costs at most one stop a bit, and a long delay never stands in front of a short one, because
every message of one level waits equally long. Pure arithmetic; `topology` spells the broker's names.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

TICK: Final = timedelta(milliseconds=50)
"""The shortest delay and the unit of all others. Rounding up costs less than it; the stops come on top."""

_TICK_MS: Final = TICK // timedelta(milliseconds=1)
_ROUNDED_BITS: Final = 4


def levels_for(longest: timedelta) -> int:
    """Return how many levels a ladder needs for delays up to `longest`.

    >>> levels_for(timedelta(days=30))
    26
    """
    return max(1, ticks_for(longest).bit_length())


def ticks_for(delay: timedelta) -> int:
    """Return a delay as ticks, rounded up, never below one.

    >>> ticks_for(timedelta(milliseconds=5000)), ticks_for(timedelta(milliseconds=101))
    (100, 3)
    """
    ms = -(-delay // timedelta(milliseconds=1))
    return max(1, -(-ms // _TICK_MS))


def round_up(ticks: int, bits: int = _ROUNDED_BITS) -> int:
    """Round up to a number with at most `bits` bits set, which bounds the stops on the way.

    For delays that nobody asked for exactly, such as a computed backoff: at most 12.5 % longer.

    >>> round_up(0b1000_0001), 0b1001_0000, round_up(7)
    (144, 144, 7)
    """
    spare = max(0, ticks.bit_length() - bits)
    return -(-ticks >> spare) << spare


def top_level(ticks: int) -> int:
    """Return the level where a message with this delay begins: that of its highest bit."""
    return ticks.bit_length() - 1


def bits_low_first(ticks: int) -> list[int]:
    """Return the bits of a delay, lowest first, up to the highest that is set.

    >>> bits_low_first(6)
    [0, 1, 1]
    """
    return [(ticks >> level) & 1 for level in range(ticks.bit_length())]
