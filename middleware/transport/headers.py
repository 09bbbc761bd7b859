"""What if another client's header holds a value that pika cannot read?

AMQP's timestamps reach further than Python's: one in milliseconds instead of seconds is enough. pika raises
over it while it reads the frame, which ends the connection, and so does the redelivery, for ever.
"""

from __future__ import annotations

from typing import Any, Final

import pika.data

_TIMESTAMP: Final = b"T"
_TIMESTAMP_BYTES: Final = 1 + 8
_original: Final = pika.data.decode_value


def tolerate_timestamps() -> None:
    """Have pika read a timestamp that no datetime can hold as None. Doing it again changes nothing."""
    pika.data.decode_value = _decode_value


def _decode_value(encoded: bytes, offset: int) -> tuple[Any, int]:
    try:
        return _original(encoded, offset)
    except (ValueError, OverflowError, OSError):
        if encoded[offset : offset + 1] != _TIMESTAMP:
            raise
        return None, offset + _TIMESTAMP_BYTES
