from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware import Queue
from middleware.transport.ladder import TICK
from middleware.transport.topology import (
    Binding,
    Topology,
    dead,
    dead_letter_queue,
    delay_queues,
    delayed,
    ready,
    topology_of,
)

LEVELS = 26
QUEUE = Queue(name="critical")
TOPOLOGY = topology_of(QUEUE, LEVELS)
ARGUMENTS = {queue.name: queue.arguments for queue in TOPOLOGY.queues}


def matches(pattern: str, key: str) -> bool:
    """Match a topic exchange's binding key: `*` is one word, `#` any number of them, none included."""
    parts = [r"\.?#" if word == "#" else re.escape(word) for word in pattern.split(".")]
    text = r"\.".join(parts).replace(r"\.\.?#", r"(\..*)?").replace(r"\*", r"[^.]+")
    return re.fullmatch(text, key) is not None


def arrivals(topology: Topology, exchange: str, key: str) -> list[str]:
    """Return the queues that a publish reaches."""
    if not exchange:
        return [key]
    hits = [each for each in topology.bindings if each.source == exchange and _routes(topology, each, key)]
    return [
        queue
        for binding in hits
        for queue in (
            arrivals(topology, binding.destination, key) if binding.to_exchange else [binding.destination]
        )
    ]


def _routes(topology: Topology, binding: Binding, key: str) -> bool:
    kinds = {exchange.name: exchange.kind for exchange in topology.exchanges}
    return matches(binding.key, key) if kinds[binding.source] == "topic" else binding.key == key


@given(st.integers(min_value=1, max_value=2**LEVELS - 1))
def test_every_delay_ends_in_the_queue_after_exactly_its_time(ticks: int) -> None:
    """A message handed down the ladder is in one place at a time, waits its ticks and ends in its queue."""
    exchange, key = delayed(QUEUE.name, ticks)
    waited_ms = stops = 0
    while True:
        (place,) = arrivals(TOPOLOGY, exchange, key)
        if place == QUEUE.name:
            break
        stops += 1
        waited_ms += ARGUMENTS[place]["x-message-ttl"]
        exchange = ARGUMENTS[place]["x-dead-letter-exchange"]
        key = ARGUMENTS[place].get("x-dead-letter-routing-key", key)
    assert waited_ms == ticks * TICK // timedelta(milliseconds=1)
    assert stops == ticks.bit_count()


def test_a_job_and_its_dead_letter_go_where_their_names_say() -> None:
    """The ways into a queue and into its dead letters lead to one queue each."""
    assert arrivals(TOPOLOGY, *ready("critical")) == ["critical"]
    assert arrivals(TOPOLOGY, *dead("critical")) == ["critical.XQ"]


def test_a_native_rejection_goes_to_the_dead_letters() -> None:
    """What the broker itself dead-letters goes the same way, whatever routing key it came with."""
    arguments = ARGUMENTS["critical"]
    way = arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"]
    assert arrivals(TOPOLOGY, *way) == ["critical.XQ"]


@pytest.mark.parametrize("name", ["critical", *delay_queues("critical", LEVELS)])
def test_what_hands_on_does_it_at_least_once(name: str) -> None:
    """Queues that dead-letter do so at least once, with all that this needs."""
    arguments = ARGUMENTS[name]
    assert arguments["x-queue-type"] == "quorum"
    assert arguments["x-dead-letter-strategy"] == "at-least-once"
    assert arguments["x-overflow"] == "reject-publish"


def test_dead_letters_never_expire_and_are_never_pushed_out() -> None:
    """The dead-letter queue has no ttl, no length and a delivery limit that no reader reaches."""
    arguments = ARGUMENTS[dead_letter_queue("critical")]
    assert arguments == {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-delivery-limit": 1_000_000,
    }


@pytest.mark.parametrize("name", delay_queues("critical", LEVELS))
def test_looking_at_a_delayed_job_does_not_move_it(name: str) -> None:
    """The ladder's queues have a delivery limit that no reader reaches: without one, RabbitMQ 4 takes 20."""
    assert ARGUMENTS[name]["x-delivery-limit"] == 1_000_000


def test_a_serial_queue_has_one_consumer_at_a_time() -> None:
    """`serial` becomes the broker's single active consumer; other queues do not have it."""
    serial = topology_of(Queue(name="one", serial=True), 1).queues[0]
    assert serial.arguments["x-single-active-consumer"] is True
    assert "x-single-active-consumer" not in ARGUMENTS["critical"]


def test_the_delivery_limit_is_the_queues() -> None:
    """The spec's delivery limit is the broker's."""
    assert topology_of(Queue(name="q", delivery_limit=50), 1).queues[0].arguments["x-delivery-limit"] == 50
    assert ARGUMENTS["critical"]["x-delivery-limit"] == 1000


def test_no_delay_queue_of_dramatiqs_is_declared() -> None:
    """Stock Dramatiq's `.DQ` queues do not exist."""
    assert not [name for name in ARGUMENTS if name.endswith(".DQ")]
    assert len(ARGUMENTS) == 2 + LEVELS
