"""What if a header is well-formed AMQP, and pika cannot read it?

pika turns a timestamp into a datetime; one in milliseconds lies beyond the year 9999 and raises inside pika's
frame reader, which ends the connection. The message would come again, for ever, and nothing behind it would
run. So such a value is read as the number that it is.
"""

from __future__ import annotations

import struct
from typing import Any

import pika.data

_TIMESTAMP = b"T"


def tolerate() -> None:
    """Have pika read timestamps that are no dates as numbers; calling it again changes nothing."""
    if not getattr(pika.data.decode_value, "is_tolerant", False):
        pika.data.decode_value = _tolerant(pika.data.decode_value)


def _tolerant(decode: Any) -> Any:
    def decode_value(encoded: bytes, offset: int) -> tuple[Any, int]:
        try:
            value: tuple[Any, int] = decode(encoded, offset)
        except (ValueError, OverflowError, OSError):
            if encoded[offset : offset + 1] != _TIMESTAMP:
                raise
            return struct.unpack_from(">Q", encoded, offset + 1)[0], offset + 9
        return value

    decode_value.is_tolerant = True  # type: ignore[attr-defined]  # a mark for `tolerate`
    return decode_value
