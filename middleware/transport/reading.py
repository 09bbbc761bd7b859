"""How is what the broker says read, without an object for each confirm?

A busy publisher reads as many confirms as it writes messages, and pika makes three objects and looks through
its callbacks for each. Here the 21 bytes of an acknowledgement go straight to whom they concern. Everything
else is pika's, which gets one frame at a time instead of cutting it off the front of all that was read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import pika
from pika.frame import decode_frame

Confirmed = Callable[[int, bool], object]
"""Takes an acknowledgement: its delivery tag, and whether it stands for all before it."""

_HEADER: Final = struct.Struct(">BHI")
_ACK: Final = struct.Struct(">BHIIQ?B")
_METHOD: Final = 1
_ACK_ID: Final = pika.spec.Basic.Ack.INDEX
_END: Final = pika.spec.FRAME_END
_PROTOCOL: Final = ord("A")  # of "AMQP": the broker speaks another version, and says so without a frame


class ReadingConnection(pika.SelectConnection):
    """A connection that reads what it gets frame by frame."""

    _frame_buffer: bytes
    bytes_received: int
    frames_received: int

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._confirmed: dict[int, Confirmed] = {}
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they are

    def on_confirms(self, channel: int, confirmed: Confirmed | None) -> None:
        """Give a channel's acknowledgements to `confirmed`, with None to pika again."""
        if confirmed is None:
            self._confirmed.pop(channel, None)
        else:
            self._confirmed[channel] = confirmed

    def _on_data_available(self, data_in: bytes) -> None:
        """Read all whole frames; called by pika, and never from what a frame causes: nobody pumps there."""
        data = self._frame_buffer + data_in if self._frame_buffer else data_in
        if data[0] == _PROTOCOL:
            self._frame_buffer = b""
            super()._on_data_available(data)
            return
        at = 0
        try:
            while (size := self._whole(data, at)) > 0:
                start, at = at, at + size
                self.bytes_received += size
                self._take(data, start, size)
        finally:
            self._frame_buffer = data[at:]

    def _whole(self, data: bytes, at: int) -> int:
        """Return the bytes of the frame that begins there, 0 if it is not whole yet."""
        if len(data) - at < _HEADER.size:
            return 0
        size = int(_HEADER.unpack_from(data, at)[2]) + _HEADER.size + 1
        return size if len(data) - at >= size else 0

    def _take(self, data: bytes, at: int, size: int) -> None:
        if size == _ACK.size and self._confirmed:
            kind, channel, _, method, tag, is_multiple, end = _ACK.unpack_from(data, at)
            confirmed = self._confirmed.get(channel)
            if method == _ACK_ID and kind == _METHOD and end == _END and confirmed is not None:
                self.frames_received += 1
                confirmed(tag, is_multiple)
                return
        frame = decode_frame(data[at : at + size])[1]
        assert frame is not None
        self._process_frame(frame)
