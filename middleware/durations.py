"""How is a length of time written in a setting or on the command line?

>>> parse_duration("1h30m")
datetime.timedelta(seconds=5400)
>>> parse_duration("250ms")
datetime.timedelta(microseconds=250000)
>>> format_duration(timedelta(seconds=5400))
'1h30m'
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern}\s*)+", re.ASCII)
_SECONDS: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Read `500ms`, `30s`, `5m`, `2h`, `30d`, a sum such as `1h30m`, or a plain number of seconds.

    Raises:
        ValueError: the text is none of these, or longer than a timedelta can hold.
    """
    text = text.strip()
    try:
        if _SECONDS.fullmatch(text):
            return timedelta(seconds=float(text))
        if _WHOLE.fullmatch(text):
            return sum((float(n) * _UNITS[unit] for n, unit in _PART.findall(text)), timedelta())
    except OverflowError:
        pass
    raise ValueError(
        f"expected a duration to be a number with ms, s, m, h or d, such as 30s or 1h30m, got: {text!r}"
    )


def format_duration(duration: timedelta) -> str:
    """Write a duration the way `parse_duration` reads it, largest unit first."""
    parts, rest = [], duration
    for unit, length in _UNITS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
