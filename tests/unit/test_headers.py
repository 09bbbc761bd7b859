from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import pika.data
import pytest

from middleware.transport.headers import tolerate_timestamps


@pytest.fixture(autouse=True)
def _tolerant() -> None:
    tolerate_timestamps()
    tolerate_timestamps()


def table(name: bytes, value: bytes) -> bytes:
    """Return an AMQP table with one value."""
    pair = bytes([len(name)]) + name + value
    return struct.pack(">I", len(pair)) + pair


def timestamp(seconds: int) -> bytes:
    """Return an AMQP timestamp."""
    return b"T" + struct.pack(">Q", seconds)


@pytest.mark.parametrize("seconds", [2**64 - 1, 2**60, 1764400000000 * 1000])
def test_a_timestamp_that_no_datetime_holds_is_none(seconds: int) -> None:
    """A timestamp out of range, also inside a table or a list, does not end the connection."""
    bad = timestamp(seconds)
    nested = b"F" + table(b"in", bad)
    for value, expected in (
        (bad, None),
        (nested, {"in": None}),
        (b"A" + struct.pack(">I", len(bad)) + bad, [None]),
    ):
        decoded: Any = pika.data.decode_table(table(b"h", value), 0)
        assert decoded == ({"h": expected}, len(table(b"h", value)))


def test_other_values_are_read_as_before() -> None:
    """What pika can read is unchanged, and so is what it refuses."""
    good = table(b"h", timestamp(1764400000))
    assert pika.data.decode_table(good, 0)[0] == {"h": datetime.fromtimestamp(1764400000, UTC)}
    with pytest.raises(pika.exceptions.InvalidFieldTypeException):
        pika.data.decode_table(table(b"h", b"?"), 0)
