"""Is the queue that a consumer waits at still the one it declared?

RabbitMQ tells a consumer when its queue is deleted, but not (3.10, see `versions.py`) when the queue is
declared differently in the same moment: the consumer would wait for ever. So each consumer declares its queue
again now and then, on a channel of its own: requests whose answer nobody waits for, the broker closes the
channel over a difference.
"""

from __future__ import annotations

import time
from typing import Final

from pika.channel import Channel

from ..errors import TopologyError
from .declare import raise_drift, request
from .topology import Topology
from .wire import Wire, closed_channel

_INTERVAL_SECONDS: Final = 5.0
_ALL_EVERY: Final = 12
"""Once a minute the dead-letter queue and the ladder as well: what somebody deleted is back."""


class QueueWatch:
    """Asks over one connection.

    Parameters:
        wire: the consumer's connection, driven by the calling thread.
        topology: of the queue, as the kit declares it.

    Attributes:
        drift: says how the broker's queue differs, None while it does not.

    Raises:
        WireError: the connection went.
    """

    def __init__(self, wire: Wire, topology: Topology) -> None:
        self.drift: TopologyError | None = None
        self._wire = wire
        self._topology = topology
        self._due = time.monotonic() + _INTERVAL_SECONDS
        self._asked = 0
        self._channel = self._open()

    def ask_when_due(self) -> None:
        """Ask if the time has come; the answer arrives while the connection is pumped.

        Raises:
            WireError: the connection went.
        """
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _INTERVAL_SECONDS
        if not self._channel.is_open:
            self._channel = self._open()
        self._asked += 1
        if self._asked % _ALL_EVERY == 0:
            request(self._channel, self._topology)
        else:
            queue = self._topology.queues[0]
            self._channel.queue_declare(queue.name, durable=True, arguments=queue.arguments)

    def _open(self) -> Channel:
        channel = self._wire.channel()
        channel.add_on_close_callback(lambda _channel, reason: self._on_closed(reason))
        return channel

    def _on_closed(self, reason: BaseException) -> None:
        try:
            raise_drift(closed_channel(reason))
        except TopologyError as drift:
            self.drift = drift
