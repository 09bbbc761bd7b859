"""Does the broker hold what the kit declares, and would anything on it drop or refuse jobs? Only asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from pika.channel import Channel

from ..errors import TopologyError
from ..transport.declare import raise_drift
from ..transport.management import Management, ManagementError, few_members
from ..transport.policies import policy_conflicts
from ..transport.quorum import QuorumBroker
from ..transport.topology import (
    DEAD_LETTER_EXCHANGE,
    ExchangeDeclaration,
    QueueDeclaration,
    Topology,
    dead_letter_queue,
)
from ..transport.wire import ChannelClosed, Wire, WireError
from .finding import Finding

_NOT_FOUND: Final = 404
_MISSING: Final = "missing"
_NO_MANAGEMENT: Final = "set JOBS_MANAGEMENT_URL, for a user with the tag `monitoring`"

Request: TypeAlias = Callable[[Channel, bool, Callable[..., Any]], Any]
"""Declares something on a channel, passively or not, and calls back."""


def check_broker(broker: QuorumBroker) -> Iterator[Finding]:
    """Yield what is wrong with a broker's queues, exchanges, policies and bindings."""
    try:
        wire = Wire(broker.parameters, "jobsctl check")
    except WireError as error:
        yield _finding("JOB301", str(error), "check JOBS_BROKER_URL, start the broker")
        return
    try:
        for name, topology in broker.topologies.items():
            yield from _check_topology(wire, name, topology)
    except WireError as error:
        yield _finding("JOB301", str(error), "see the broker's log")
    finally:
        wire.close()
    if broker.management is None:
        yield _finding(
            "JOB307",
            "policies, bindings and members were not checked: they need the HTTP API",
            _NO_MANAGEMENT,
        )
        return
    yield from _check_management(broker, broker.management)


def _check_topology(wire: Wire, name: str, topology: Topology) -> Iterator[Finding]:
    asked = [(f"exchange {each.name!r}", _exchange(each)) for each in topology.exchanges]
    asked += [(f"queue {each.name!r}", _queue(each)) for each in topology.queues]
    missing = []
    for what, request in asked:
        wrong = _ask(wire, request)
        if wrong == _MISSING:
            missing.append(what)
        elif wrong:
            yield _drift(wrong)
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        yield _finding(
            "JOB302",
            f"queue {name!r}: expected what it needs to be on the broker, got: no "
            f"{', no '.join(missing[:3])}{more}",
            "start a worker of the queue, or send it a job: either declares what is missing",
        )


def _exchange(exchange: ExchangeDeclaration) -> Request:
    return lambda channel, passive, done: channel.exchange_declare(
        exchange.name, exchange.kind, passive=passive, durable=True, callback=done
    )


def _queue(queue: QueueDeclaration) -> Request:
    return lambda channel, passive, done: channel.queue_declare(
        queue.name, passive=passive, durable=True, arguments=queue.arguments, callback=done
    )


def _ask(wire: Wire, request: Request) -> str:
    """Return what is wrong: nothing, `_MISSING`, or in which way it differs.

    First passively, so that nothing comes into being; what exists is then declared as the kit would, which
    changes nothing and is refused if an argument differs.
    """
    wrong = _declare(wire, request, passive=True)
    return wrong or _declare(wire, request, passive=False)


def _declare(wire: Wire, request: Request, *, passive: bool) -> str:
    channel = wire.channel()
    try:
        wire.call(lambda done: request(channel, passive, done), channel)
    except ChannelClosed as closed:
        if passive and closed.code == _NOT_FOUND:
            return _MISSING
        try:
            raise_drift(closed)
        except TopologyError as drift:
            return str(drift)
        return str(closed)
    channel.close()
    return ""


def _check_management(broker: QuorumBroker, management: Management) -> Iterator[Finding]:
    declared = [queue for topology in broker.topologies.values() for queue in topology.queues]
    try:
        for sentence in policy_conflicts(management.policies(), declared, broker.consumer_timeout):
            why, _, fix = sentence.rpartition("; ")
            yield _finding("JOB303", why, fix)
        there = management.queues()
        yield from _check_bindings(broker, management, there)
        nodes = management.nodes()
    except ManagementError as error:
        yield _finding("JOB307", f"the HTTP API was not asked to its end: {error}", _NO_MANAGEMENT)
        return
    few = few_members(there, [queue.name for queue in declared], nodes)
    if few:
        yield _finding(
            "JOB306",
            f"{len(few)} queues, such as {few[0]!r}, have fewer members than min(3, {nodes} nodes)",
            "rabbitmq-queues grow NODE all",
        )


def _check_bindings(
    broker: QuorumBroker, management: Management, there: dict[str, dict[str, Any]]
) -> Iterator[Finding]:
    names = [name for name in broker.topologies if dead_letter_queue(name) in there]
    bound = management.bindings(DEAD_LETTER_EXCHANGE) if names else set()
    for name in names:
        if (dead_letter_queue(name), name) not in bound:
            yield _finding(
                "JOB304",
                f"expected exchange {DEAD_LETTER_EXCHANGE!r} to lead to {dead_letter_queue(name)!r}, got: no "
                "such binding; what the broker itself dead-letters would stay where it is",
                "start a worker of the queue, which binds it again",
            )


def _drift(text: str) -> Finding:
    why, _, fix = text.partition("; ")
    return _finding("JOB302", why, fix or "see the broker's log, and the rights of the user")


def _finding(code: str, why: str, fix: str) -> Finding:
    return Finding("", 0, code, why, fix)
