"""Which bytes is a small message on the wire? Written at once, as pika writes them frame by frame."""

from __future__ import annotations

import struct
from typing import Any, Final

import pika
from pika.data import encode_table

from .publication import Publication

_CONTENT_TYPE: Final = b"application/json"
_PERSISTENT: Final = 2
_DELIVERY_MODE: Final = bytes([_PERSISTENT])
_END: Final = bytes([pika.spec.FRAME_END])
_FRAME: Final = struct.Struct(">BHI")
_HEADER: Final = struct.Struct(">HHQH")  # class, weight, size of the body, which properties follow
_TIMESTAMP: Final = struct.Struct(">Q")
_FLAGS: Final = pika.BasicProperties


def beginning(channel: int, exchange: str, routing_key: str) -> bytes:
    """Return the first frame of every message that goes there: `basic.publish`, mandatory."""
    method = pika.spec.Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=True)
    return pika.frame.Method(channel, method).marshal()


def content(channel: int, publication: Publication, number: int) -> bytes:
    """Return the frames that follow: header and body.

    Parameters:
        channel: its number.
        publication: whose body is not empty and fits into one frame.
        number: of the publish on its channel; an unroutable message comes back with it.

    Raises:
        ValueError, TypeError, struct.error, pika.exceptions.AMQPError: a property cannot be written.
    """
    body = publication.body
    flags, properties = _properties(publication, number)
    header = _HEADER.pack(pika.spec.Basic.INDEX, 0, len(body), flags) + properties
    return b"".join(
        (
            _FRAME.pack(pika.spec.FRAME_HEADER, channel, len(header)),
            header,
            _END,
            _FRAME.pack(pika.spec.FRAME_BODY, channel, len(body)),
            body,
            _END,
        )
    )


def _properties(publication: Publication, number: int) -> tuple[int, bytes]:
    """Return which properties a message has, and their values in the order of AMQP 0-9-1."""
    flags = _FLAGS.FLAG_CONTENT_TYPE | _FLAGS.FLAG_DELIVERY_MODE | _FLAGS.FLAG_CORRELATION_ID
    pieces = [_short(_CONTENT_TYPE)]
    if publication.headers:
        flags |= _FLAGS.FLAG_HEADERS
        encode_table(pieces, dict(publication.headers))
    pieces += (_DELIVERY_MODE, _short(str(number).encode()), _short(publication.message_id.encode()))
    flags |= _FLAGS.FLAG_MESSAGE_ID
    if publication.timestamp:
        flags |= _FLAGS.FLAG_TIMESTAMP
        pieces.append(_TIMESTAMP.pack(publication.timestamp))
    if publication.actor:
        flags |= _FLAGS.FLAG_TYPE
        pieces.append(_short(publication.actor.encode()))
    return flags, b"".join(pieces)


def _short(text: bytes) -> bytes:
    """Return a short string; longer than 255 bytes raises ValueError."""
    return bytes([len(text)]) + text


def properties_of(publication: Publication, number: int) -> pika.BasicProperties:
    """Return the AMQP properties, for what pika writes: they serve people who look with RabbitMQ's tools.

    Parameters:
        publication: to be written.
        number: of the publish on its channel.
    """
    headers: Any = publication.headers or None
    return pika.BasicProperties(
        correlation_id=str(number),
        content_type=_CONTENT_TYPE.decode(),
        delivery_mode=_PERSISTENT,
        message_id=publication.message_id,
        type=publication.actor or None,
        timestamp=publication.timestamp or None,
        headers=headers,
    )
