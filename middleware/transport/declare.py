"""How does the topology get onto the broker, and what if the broker holds something else?

Declaring is idempotent and is done at every start and every reconnect. Everything is sent at once and
answered by one request at the end: 28 queues that exist already take one round trip.
"""

from __future__ import annotations

import re
import time
from typing import Final

from pika.channel import Channel

from ..errors import TopologyError
from .topology import Topology
from .wire import ChannelClosed, Wire

_ACCESS_REFUSED: Final = 403
_NOT_FOUND: Final = 404
_PRECONDITION_FAILED: Final = 406
_DIFFERS = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<what>queue|exchange) '(?P<name>[^']+)' "
    r"in vhost '[^']*': received (?P<ours>.+?) but current is (?P<theirs>.+)",
    re.DOTALL,
)
_VALUE = re.compile(r"(?:the value )?'(?P<value>[^']*)'(?: of type '[^']*')?")
_ATTEMPTS: Final = 4
"""Two processes that declare one quorum queue at the same moment can make one of them fail."""
_PAUSE_SECONDS: Final = 0.1
_BEING_MADE: Final = "down or inaccessible"
"""What RabbitMQ 3.10.8 says of a queue, with a 404, while another connection is just declaring it."""


def declare(wire: Wire, topology: Topology) -> None:
    """Declare a queue's topology.

    Parameters:
        wire: an open connection, driven by the calling thread.
        topology: what to declare.

    Raises:
        TopologyError: the broker holds a queue or exchange of that name with other arguments.
        ChannelClosed: the broker refuses for another reason, such as missing permissions.
        WireError: the connection went.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        channel = wire.channel()
        try:
            request(channel, topology)
            _synchronise(wire, channel)
            channel.close()
            return
        except ChannelClosed as closed:
            raise_drift(closed)
            if attempt == _ATTEMPTS or not _may_pass(closed):
                raise
            time.sleep(_PAUSE_SECONDS * attempt)


def _may_pass(closed: ChannelClosed) -> bool:
    """Whether a moment later the same declaration may succeed."""
    if closed.code == _NOT_FOUND:
        return _BEING_MADE in closed.text
    return closed.code != _ACCESS_REFUSED


def request(channel: Channel, topology: Topology) -> None:
    """Send the declarations of a topology and wait for nothing; a difference closes the channel."""
    for exchange in topology.exchanges:
        channel.exchange_declare(exchange.name, exchange.kind, durable=True)
    for queue in topology.queues:
        channel.queue_declare(queue.name, durable=True, arguments=queue.arguments)
    for binding in topology.bindings:
        if binding.to_exchange:
            channel.exchange_bind(binding.destination, binding.source, binding.key)
        else:
            channel.queue_bind(binding.destination, binding.source, binding.key)


def _synchronise(wire: Wire, channel: Channel) -> None:
    """Wait until everything sent on a channel is done: a channel works in order."""
    wire.call(lambda done: channel.basic_qos(prefetch_count=0, callback=done), channel)


def raise_drift(closed: ChannelClosed) -> None:
    """Raise TopologyError if a channel was closed because a declaration differs from what exists."""
    if closed.code != _PRECONDITION_FAILED:
        return
    match = _DIFFERS.search(closed.text)
    if match is None:
        return
    name, argument = match["name"], match["argument"]
    raise TopologyError(
        f"{match['what']} {name!r}: expected {argument} to be {_value(match['ours'])} as the kit declares, "
        f"got: {_value(match['theirs'])} on the broker; change the Queue to the broker's value, or let the "
        f"queue run empty and delete it (rabbitmqctl delete_queue {name} --if-empty), then start again"
    )


def _value(text: str) -> str:
    match = _VALUE.fullmatch(text.strip())
    return match["value"] if match else text.strip()
