"""Does RabbitMQ differ between versions as `middleware/transport/versions.py` says? Shown without the kit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx
import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.rabbit import Rabbit
from tests.waiting import wait_until


def declare(channel: BlockingChannel, name: str, **arguments: Any) -> None:
    """Declare a quorum queue; underscores in arguments stand for hyphens."""
    spelt = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum", **spelt})


def get(channel: BlockingChannel, queue: str) -> tuple[int, Mapping[str, Any]]:
    """Wait for a queue's first message and take it; return its tag and its headers."""
    found = wait_until(lambda: taken if (taken := channel.basic_get(queue))[0] else None, what="a message")
    assert found is not None
    method, properties, _body = found
    assert method is not None
    assert properties is not None
    return method.delivery_tag, properties.headers or {}


@pytest.mark.parametrize(
    ("limit", "returns", "kept_since_4"),
    [({}, 21, False), ({"x_delivery_limit": -1}, 1, True)],
    ids=["none", "-1"],
)
def test_a_queue_without_a_delivery_limit(
    rabbit: Rabbit, limit: dict[str, int], returns: int, kept_since_4: bool
) -> None:
    """Without a limit 3.10 has none and 4.x takes 20; -1 is no limit on 4.x, and the first return on 3.10."""
    with rabbit.channel() as channel:
        declare(channel, "q", **limit)
        rabbit.publish("q", b"")
        for _ in range(returns):
            channel.basic_nack(get(channel, "q")[0], requeue=True)
    kept = int(rabbit.is_since(4, 0) is kept_since_4)
    wait_until(lambda: rabbit.ready("q") == kept, what=f"{kept} messages to be left")


def test_the_count_of_deliveries_on_a_first_one(rabbit: Rabbit) -> None:
    """Up to 3.11 the first delivery carries a count of 0, later ones carry none."""
    with rabbit.channel() as channel:
        declare(channel, "q")
        rabbit.publish("q", b"")
        _, headers = get(channel, "q")
    assert headers.get("x-delivery-count") == (None if rabbit.is_since(3, 12) else 0)


def test_deaths_that_a_client_publishes(rabbit: Rabbit) -> None:
    """3.10 counts on from an `x-death` that a client wrote, 4.x begins anew."""
    death = {"queue": "q", "reason": "rejected", "count": 3, "exchange": "", "routing-keys": ["q"]}
    with rabbit.channel() as channel:
        declare(channel, "dead")
        declare(channel, "q", x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
        rabbit.publish("q", b"", headers={"x-death": [death]})
        channel.basic_reject(get(channel, "q")[0], requeue=False)
        _, headers = get(channel, "dead")
    assert headers["x-death"][0]["count"] == (1 if rabbit.is_since(4, 0) else 4)


def test_a_consumer_whose_queue_is_replaced_at_once(rabbit: Rabbit) -> None:
    """4.x cancels the consumer of a queue that is deleted and declared anew, 3.10 leaves it waiting."""
    cancelled: list[object] = []
    gone = suppress(pika.exceptions.ConnectionClosedByBroker)  # 3.10 fails when that consumer leaves
    with gone, rabbit.channel() as channel, rabbit.channel() as other:
        declare(channel, "q")
        channel.add_on_cancel_callback(cancelled.append)
        channel.basic_consume("q", lambda *_: None)
        other.queue_delete("q")
        declare(other, "q", x_delivery_limit=7)
        channel.connection.process_data_events(5 if rabbit.is_since(4, 0) else 1)
    assert bool(cancelled) is rabbit.is_since(4, 0)


def test_what_policies_apply_to(rabbit: Rabbit) -> None:
    """Policies can name a kind of queues since 3.12."""
    if rabbit.is_since(3, 12):
        rabbit.set_policy(".*", "quorum_queues", max_length=1)
        return
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        rabbit.set_policy(".*", "quorum_queues", max_length=1)


def test_what_a_message_may_weigh(rabbit: Rabbit) -> None:
    """17 MiB are taken by 3.10 and close the channel on 4.x."""
    with rabbit.channel() as channel:
        declare(channel, "q")
    if not rabbit.is_since(4, 0):
        rabbit.publish("q", bytes(17 * 1024 * 1024))
        assert rabbit.ready("q") == 1
        return
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="larger than") as closed:
        rabbit.publish("q", bytes(17 * 1024 * 1024))
    assert "16777216" in closed.value.reply_text
