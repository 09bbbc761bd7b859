"""Are a message's bytes those that pika would write?"""

from __future__ import annotations

import struct

import pika
import pika.exceptions
import pytest

from middleware.transport.frames import beginning, content, properties_of
from middleware.transport.publication import READY, Publication

PLAIN = Publication(
    queue="critical", place=READY, body=b'{"a":1}', message_id="1-2", actor="charge", timestamp=1_700_000_000
)
HEADERS = {"jobs-attempt": 2, "jobs-kind": "transient", "jobs-text": "ü", "jobs-list": [1, "a", None, True]}


def as_pika_writes(channel: int, publication: Publication, number: int) -> bytes:
    """Return header and body as pika's frames."""
    header = pika.frame.Header(channel, len(publication.body), properties_of(publication, number))
    return bytes(header.marshal() + pika.frame.Body(channel, publication.body).marshal())


@pytest.mark.parametrize(
    "publication",
    [
        PLAIN,
        PLAIN._replace(actor=""),
        PLAIN._replace(timestamp=0),
        PLAIN._replace(headers=HEADERS),
        PLAIN._replace(actor="ü" * 127, message_id="x" * 255),
        PLAIN._replace(body=b"\x00\xce" * 2000),
        PLAIN._replace(actor="", timestamp=0, headers=HEADERS, message_id=""),
    ],
)
def test_content_is_what_pika_writes(publication: Publication) -> None:
    """Byte for byte, whichever properties a message has."""
    for channel, number in ((1, 1), (2047, 123_456_789)):
        assert content(channel, publication, number) == as_pika_writes(channel, publication, number)


def test_beginning_is_what_pika_writes() -> None:
    """Byte for byte."""
    method = pika.spec.Basic.Publish(exchange="", routing_key="critical", mandatory=True)
    assert beginning(3, "", "critical") == pika.frame.Method(3, method).marshal()


@pytest.mark.parametrize(
    "publication",
    [
        PLAIN._replace(message_id="x" * 256),
        PLAIN._replace(actor="ü" * 128),
        PLAIN._replace(timestamp=-1),
        PLAIN._replace(headers={"jobs-thing": object()}),
    ],
)
def test_what_cannot_be_written_raises(publication: Publication) -> None:
    """A property that AMQP cannot carry is no message at all, instead of a broken one."""
    with pytest.raises((ValueError, struct.error, pika.exceptions.AMQPError)):
        content(1, publication, 1)
