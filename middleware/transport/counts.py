"""How many of a queue's jobs are in which state? What cannot be known is None, never a guess."""

from __future__ import annotations

from dataclasses import dataclass

from pika.channel import Channel

from .management import Management, ManagementError
from .topology import dead_letter_queue, delay_queues
from .wire import ChannelClosed, Wire


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many of a queue's jobs are in which state; None where the number is not known."""

    queue: str
    waiting: int | None
    active: int | None
    delayed: int | None
    failed: int | None
    dead: int | None


def count_queue(wire: Wire, queue: str, levels: int, management: Management | None) -> QueueCounts:
    """Count by passive declares; unacknowledged jobs need the management API.

    Parameters:
        wire: an open connection, driven by the calling thread.
        queue: canonical queue name.
        levels: how many levels the queue's ladder has.
        management: RabbitMQ's HTTP API, None if there is none.

    Raises:
        WireError: the connection went.
    """
    delayed = [_ready(wire, name) for name in delay_queues(queue, levels)]
    return QueueCounts(
        queue=queue,
        waiting=_ready(wire, queue),
        active=_unacknowledged(management, queue),
        delayed=None if None in delayed else sum(count or 0 for count in delayed),
        failed=_ready(wire, dead_letter_queue(queue)),
        dead=None,
    )


def _ready(wire: Wire, name: str) -> int | None:
    channel: Channel = wire.channel()
    try:
        answer = wire.call(lambda done: channel.queue_declare(name, passive=True, callback=done), channel)
    except ChannelClosed:
        return None
    channel.close()
    count: int = answer.method.message_count
    return count


def _unacknowledged(management: Management | None, queue: str) -> int | None:
    if management is None:
        return None
    try:
        found = management.queues().get(queue, {})
    except ManagementError:
        return None
    count = found.get("messages_unacknowledged")
    return count if isinstance(count, int) else None
