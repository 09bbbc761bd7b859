from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("5s", timedelta(seconds=5)),
        ("1.5s", timedelta(seconds=1.5)),
        (" 2 h 30 m ", timedelta(hours=2, minutes=30)),
        ("30d", timedelta(days=30)),
        ("90", timedelta(seconds=90)),
        ("0", timedelta(0)),
    ],
)
def test_duration_is_read_in_the_unit_it_names(text: str, length: timedelta) -> None:
    """A duration carries its unit; a plain number means seconds."""
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["", "s", "5 weeks", "-5s", "5s later", "1e3", "99999999999d", "٣s"])
def test_anything_else_is_refused(text: str) -> None:
    """What is no duration is refused with the forms that are."""
    with pytest.raises(ValueError, match="expected a duration to be a number with ms, s, m, h or d"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650)))
def test_what_is_written_reads_the_same(length: timedelta) -> None:
    """A duration of whole milliseconds survives being written and read."""
    whole = length - length % timedelta(milliseconds=1)
    assert parse_duration(format_duration(whole)) == whole
