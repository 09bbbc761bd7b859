"""Is the queue that a consumer waits at still the one it declared?

RabbitMQ tells a consumer when its queue is deleted, but not (3.10) when the queue is declared differently in
the same moment: the consumer would wait for ever. So each consumer declares its queue again now and then, on
a channel of its own: one small request, whose answer nobody waits for.
"""

from __future__ import annotations

import time
from typing import Final

from ..errors import TopologyError
from .declare import raise_drift
from .topology import QueueDeclaration
from .wire import Wire, closed_channel

_INTERVAL_SECONDS: Final = 5.0


class QueueWatch:
    """Asks over one connection.

    Parameters:
        wire: the consumer's connection, driven by the calling thread.
        queue: as the kit declares it.

    Attributes:
        drift: says how the broker's queue differs, None while it does not.

    Raises:
        WireError: the connection went.
    """

    def __init__(self, wire: Wire, queue: QueueDeclaration) -> None:
        self.drift: TopologyError | None = None
        self._queue = queue
        self._due = time.monotonic() + _INTERVAL_SECONDS
        self._channel = wire.channel()
        self._channel.add_on_close_callback(lambda _channel, reason: self._on_closed(reason))

    def ask_when_due(self) -> None:
        """Ask if the time has come; the answer arrives while the connection is pumped."""
        now = time.monotonic()
        if now >= self._due and self._channel.is_open:
            self._due = now + _INTERVAL_SECONDS
            self._channel.queue_declare(
                self._queue.name, durable=True, arguments=self._queue.arguments, callback=_nothing
            )

    def _on_closed(self, reason: BaseException) -> None:
        try:
            raise_drift(closed_channel(reason))
        except TopologyError as drift:
            self.drift = drift


def _nothing(_frame: object) -> None:
    """The queue is as declared; otherwise the broker closes the channel."""
