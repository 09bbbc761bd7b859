"""What does the kit declare on the broker? The only place that spells AMQP names and arguments.

For a queue `critical`::

    critical            the jobs
    critical.XQ         its dead letters, fed by the exchange jobs.dlx
    critical.delay.NN   level NN of its delay ladder: a waiting queue and a topic exchange of one name

Every queue is a durable quorum queue. The jobs and the ladder dead-letter at least once, which needs a
quorum queue as source, `reject-publish` as overflow, and persistent messages:
https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from .ladder import TICK, bits_low_first, top_level
from .queues import Queue
from .versions import UNREACHABLE_DELIVERY_LIMIT

DEAD_LETTER_EXCHANGE: Final = "jobs.dlx"
DEAD_LETTER_SUFFIX: Final = ".XQ"


class Route(NamedTuple):
    """Where a publish goes."""

    exchange: str
    routing_key: str


@dataclass(frozen=True, slots=True)
class QueueDeclaration:
    """A queue with the arguments that the kit declares."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExchangeDeclaration:
    """A durable exchange."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding from an exchange to a queue, or to another exchange."""

    source: str
    destination: str
    key: str
    to_exchange: bool = False


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that one queue needs, in the order in which it can be declared."""

    exchanges: tuple[ExchangeDeclaration, ...]
    queues: tuple[QueueDeclaration, ...]
    bindings: tuple[Binding, ...]


def topology_of(queue: Queue, levels: int) -> Topology:
    """Return what a queue needs on the broker.

    Parameters:
        queue: the declared queue.
        levels: how many levels its delay ladder has.
    """
    ladder = [_level_exchange(queue.name, level) for level in range(levels)]
    return Topology(
        exchanges=(
            ExchangeDeclaration(DEAD_LETTER_EXCHANGE, "direct"),
            *(ExchangeDeclaration(name, "topic") for name in ladder),
        ),
        queues=(
            QueueDeclaration(queue.name, _job_arguments(queue)),
            QueueDeclaration(dead_letter_queue(queue.name), _dead_letter_arguments()),
            *(
                QueueDeclaration(ladder[level], _level_arguments(queue.name, level))
                for level in range(levels)
            ),
        ),
        bindings=(
            Binding(DEAD_LETTER_EXCHANGE, dead_letter_queue(queue.name), queue.name),
            *(binding for level in range(levels) for binding in _level_bindings(queue.name, level)),
        ),
    )


def ready(queue: str) -> Route:
    """Return the way into a queue itself."""
    return Route("", queue)


def dead(queue: str) -> Route:
    """Return the way into a queue's dead letters."""
    return Route(DEAD_LETTER_EXCHANGE, queue)


def delayed(queue: str, ticks: int) -> Route:
    """Return the way into a queue's ladder: the level of the highest bit, the bits as routing key."""
    key = ".".join(map(str, bits_low_first(ticks)))
    return Route(_level_exchange(queue, top_level(ticks)), key)


def dead_letter_queue(queue: str) -> str:
    """Return the name of a queue's dead-letter queue."""
    return queue + DEAD_LETTER_SUFFIX


def delay_queues(queue: str, levels: int) -> list[str]:
    """Return the names of a queue's waiting queues."""
    return [_level_exchange(queue, level) for level in range(levels)]


def _level_exchange(queue: str, level: int) -> str:
    return f"{queue}.delay.{level:02d}"


def _job_arguments(queue: Queue) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": DEAD_LETTER_EXCHANGE,
        # Explicit: a job that came through the ladder carries its delay's bits as routing key.
        "x-dead-letter-routing-key": queue.name,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": queue.delivery_limit,
    }
    if queue.serial:
        arguments["x-single-active-consumer"] = True
    return arguments


def _dead_letter_arguments() -> dict[str, Any]:
    return {
        "x-queue-type": "quorum",
        # Should somebody bound its length by a policy, a new dead letter must not push out an old one.
        "x-overflow": "reject-publish",
        "x-delivery-limit": UNREACHABLE_DELIVERY_LIMIT,
    }


def _level_arguments(queue: str, level: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "x-queue-type": "quorum",
        "x-message-ttl": (TICK // timedelta(milliseconds=1)) << level,
        "x-dead-letter-exchange": "" if level == 0 else _level_exchange(queue, level - 1),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": UNREACHABLE_DELIVERY_LIMIT,  # or looking at a delayed job would hand it on early
    }
    if level == 0:
        arguments["x-dead-letter-routing-key"] = queue
    return arguments


def _level_bindings(queue: str, level: int) -> list[Binding]:
    """A set bit leads into the level's queue; a clear one leads past it, at the end into the queue."""
    exchange, skip = _level_exchange(queue, level), "*." * level
    past = (
        Binding(exchange, queue, f"{skip}0.#")
        if level == 0
        else Binding(exchange, _level_exchange(queue, level - 1), f"{skip}0.#", to_exchange=True)
    )
    return [Binding(exchange, exchange, f"{skip}1.#"), past]
