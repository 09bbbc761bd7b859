from __future__ import annotations

import pytest

from middleware import ConfigurationError, TopologyError
from middleware.transport.addresses import HEARTBEAT_SECONDS, describe_address, parse_urls
from middleware.transport.confirms import size_limit
from middleware.transport.declare import raise_drift
from middleware.transport.management import Management, few_members
from middleware.transport.wire import ChannelClosed


def test_a_cluster_is_several_addresses() -> None:
    """Addresses are separated by semicolons; spaces around them do not count."""
    nodes = parse_urls("amqp://u:p@one:5672/v; amqp://u:p@two/v ;")
    assert [(node.host, node.port, node.virtual_host) for node in nodes] == [
        ("one", 5672, "v"),
        ("two", 5672, "v"),
    ]


def test_heartbeats_are_on_unless_the_address_says_otherwise() -> None:
    """A connection notices within a minute that its broker is gone."""
    assert parse_urls("amqp://host/v")[0].heartbeat == HEARTBEAT_SECONDS
    assert parse_urls("amqp://host/v?heartbeat=5")[0].heartbeat == 5


@pytest.mark.parametrize("url", ["http://host", "host:5672", "amqp://host:port/v", "amqp://host?heartbeat=x"])
def test_another_address_is_refused_without_its_password(url: str) -> None:
    """What is no AMQP address is refused."""
    with pytest.raises(ConfigurationError) as refused:
        parse_urls(url.replace("host", "user:secret@host"))
    assert "expected" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_address_is_logged_without_its_password() -> None:
    """What the log shows of an address has no secret."""
    (node,) = parse_urls("amqp://user:secret@host:5673/%2F")
    assert describe_address(node) == "host:5673, virtual host '/'"


@pytest.mark.parametrize("url", ["amqp://host", "host", "http://", ""])
def test_another_management_address_is_refused(url: str) -> None:
    """The management API is an HTTP address."""
    with pytest.raises(ConfigurationError, match="JOBS_MANAGEMENT_URL"):
        Management(url, "/")


@pytest.mark.parametrize(
    ("argument", "what", "received", "current", "expected"),
    [
        (
            "x-delivery-limit",
            "queue 'q'",
            "the value '1000' of type 'signedint'",
            "the value '500' of type 'long'",
            "x-delivery-limit to be 1000 as the kit declares, got: 500",
        ),
        (
            "x-dead-letter-exchange",
            "queue 'q'",
            "the value 'jobs.dlx' of type 'longstr'",
            "none",
            "x-dead-letter-exchange to be jobs.dlx as the kit declares, got: none",
        ),
        (
            "x-max-length",
            "queue 'q'",
            "none",
            "the value '5' of type 'long'",
            "x-max-length to be none as the kit declares, got: 5",
        ),
        (
            "durable",
            "queue 'q'",
            "'true'",
            "'false'",
            "durable to be true as the kit declares, got: false",
        ),
        (
            "type",
            "exchange 'jobs.dlx'",
            "'direct'",
            "'fanout'",
            "type to be direct as the kit declares, got: fanout",
        ),
    ],
)
def test_drift_is_told_in_the_kits_words(
    argument: str, what: str, received: str, current: str, expected: str
) -> None:
    """The broker's refusal becomes a sentence with name, argument, both values and the way out."""
    text = (
        f"PRECONDITION_FAILED - inequivalent arg '{argument}' for {what} in vhost 'my vhost': "
        f"received {received} but current is {current}"
    )
    with pytest.raises(TopologyError) as drift:
        raise_drift(ChannelClosed(406, text))
    found = str(drift.value)
    assert found.startswith(f"{what}: expected {expected} on the broker")
    assert "delete" in found


@pytest.mark.parametrize(
    "closed",
    [
        ChannelClosed(404, "NOT_FOUND - no queue 'critical' in vhost '/'"),
        ChannelClosed(
            403,
            "ACCESS_REFUSED - inequivalent arg 'x' for queue 'q' in vhost '/': received 1 but current is 2",
        ),
        ChannelClosed(406, "PRECONDITION_FAILED - unknown delivery tag 1"),
        ChannelClosed(0, "gone"),
    ],
)
def test_another_refusal_is_no_drift(closed: ChannelClosed) -> None:
    """Only a declaration that differs is drift."""
    raise_drift(closed)


@pytest.mark.parametrize(
    "text",
    [
        "PRECONDITION_FAILED - message size 4168 larger than max size 2000",
        "PRECONDITION_FAILED - message size 4168 is larger than configured max size 2000",
    ],
    ids=["3.10", "4.x"],
)
def test_the_brokers_size_limit_is_read(text: str) -> None:
    """Both wordings of RabbitMQ tell the largest body that it takes."""
    assert size_limit(ChannelClosed(406, text)) == 2000
    assert size_limit(ChannelClosed(406, "something else")) is None


def test_queues_with_few_members_are_found() -> None:
    """A queue should have three members, or as many as there are nodes."""
    queues = {"a": {"members": ["1"]}, "b": {"members": ["1", "2", "3"]}, "c": {"members": ["1", "2"]}}
    assert few_members(queues, ["a", "b", "c", "absent"], 5) == ["a", "c"]
    assert few_members(queues, ["a", "b", "c"], 1) == []
