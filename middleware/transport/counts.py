"""How many of a queue's jobs are in which state? What cannot be known is None, never a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    """Count by passive declares, and what AMQP does not tell by the management API.

    That is how many jobs are unacknowledged, and how many a queue holds that it cannot hand on: delayed ones
    whose queue is gone or full, dead ones that their dead-letter queue refuses.

    Parameters:
        wire: an open connection, driven by the calling thread.
        queue: canonical queue name.
        levels: how many levels the queue's ladder has.
        management: RabbitMQ's HTTP API, None if there is none.

    Raises:
        WireError: the connection went.
    """
    known = _known(management)
    ladder = delay_queues(queue, levels)
    return QueueCounts(
        queue=queue,
        waiting=_ready(wire, queue),
        active=_count(known, queue, "messages_unacknowledged"),
        delayed=_sum(
            *(_ready(wire, name) for name in ladder),
            *(_count(known, name, "messages_dlx") or 0 for name in ladder),
        ),
        failed=_sum(_ready(wire, dead_letter_queue(queue)), _count(known, queue, "messages_dlx") or 0),
        dead=None,
    )


def _sum(*counts: int | None) -> int | None:
    """Add numbers; one that is not known makes the sum unknown."""
    return None if None in counts else sum(count or 0 for count in counts)


def _ready(wire: Wire, name: str) -> int | None:
    channel: Channel = wire.channel()
    try:
        answer = wire.call(lambda done: channel.queue_declare(name, passive=True, callback=done), channel)
    except ChannelClosed:
        return None
    channel.close()
    count: int = answer.method.message_count
    return count


def _known(management: Management | None) -> dict[str, dict[str, Any]]:
    if management is None:
        return {}
    try:
        return management.queues()
    except ManagementError:
        return {}


def _count(known: dict[str, dict[str, Any]], queue: str, name: str) -> int | None:
    count = known.get(queue, {}).get(name)
    return count if isinstance(count, int) else None
