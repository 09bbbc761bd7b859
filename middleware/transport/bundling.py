"""How do the frames of a message leave together, instead of one packet each?

pika gives each frame to the socket by itself, when its poller says that the socket takes data: three packets
a message, each of which wakes the broker, and five system calls. Here the frames are kept until the owner of
the connection pumps it, and leave in one piece, at once.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Any

from .reading import ReadingConnection


class BundlingConnection(ReadingConnection):
    """A connection that writes when `flush` is called."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._unsent: list[bytes] = []
        super().__init__(*args, **kwargs)

    def _adapter_emit_data(self, data: bytes) -> None:
        self._unsent.append(data)

    def write(self, frames: bytes) -> None:
        """Write whole frames that the caller has encoded."""
        self._unsent.append(frames)

    def flush(self) -> None:
        """Write what was said since the last call; what the socket does not take waits in pika's buffer.

        Whatever is wrong with the socket, pika finds it with the rest, and closes the connection as ever.
        """
        unsent, transport = self._unsent, self._transport
        if not unsent:
            return
        data = b"".join(unsent)
        unsent.clear()
        if transport is None:
            return  # the connection has gone meanwhile
        sent = 0
        plain = _plain_socket(transport)
        if plain is not None and not transport.get_write_buffer_size():
            with contextlib.suppress(OSError):
                sent = plain.send(data)
        if sent < len(data):
            super()._adapter_emit_data(data[sent:])

    @property
    def writes_at_once(self) -> bool:
        """Whether `flush` gives it to the socket itself, as far as that takes it: it is not encrypted."""
        return self._transport is not None and _plain_socket(self._transport) is not None

    @property
    def has_unsent(self) -> bool:
        """Whether something waits for the socket to take data again."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0


def _socket(transport: Any) -> socket.socket | None:
    found = getattr(transport, "_sock", None)
    return found if isinstance(found, socket.socket) and found.fileno() >= 0 else None


def _plain_socket(transport: Any) -> socket.socket | None:
    """Return the socket below a transport, None if it is not there or encrypts."""
    found = _socket(transport)
    return None if isinstance(found, ssl.SSLSocket) else found
