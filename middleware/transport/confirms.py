"""Which publishes on a channel has the broker not answered yet?

Confirms are pipelined: many publishes are in flight on one channel and the broker answers each, in any
order, by its number. What is still in flight when a channel or connection goes may be stored or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pika
import pika.exceptions
from pika.channel import Channel

from . import topology
from .frames import beginning, content, properties_of
from .publication import DEAD, DELAYED, Publication, Result, Ticket
from .versions import TOO_LARGE
from .wire import ChannelClosed, Wire, WireError, closed_channel

_NO_EXCHANGE = re.compile(r"no exchange '([^']+)'")
_ONE_FRAME: Final = 4096 - 8
"""Bytes of a body that fit into one frame, however small the frames are that client and broker agree on."""


def route_of(publication: Publication) -> topology.Route:
    """Return exchange and routing key of a publication."""
    if publication.place == DELAYED:
        return topology.delayed(publication.queue, publication.ticks)
    if publication.place == DEAD:
        return topology.dead(publication.queue)
    return topology.ready(publication.queue)


class ConfirmChannel:
    """A channel in confirm mode and the tickets in flight on it.

    Parameters:
        wire: the publisher's connection.
        on_unroutable: takes a ticket that no queue wanted and that was not redeclared for yet.
        on_closed: called after the channel closed and its tickets were told.

    Raises:
        WireError: the connection went while the channel was being opened.
    """

    def __init__(
        self, wire: Wire, on_unroutable: Callable[[Ticket], None], on_closed: Callable[[ChannelClosed], None]
    ) -> None:
        self.in_flight: dict[int, Ticket] = {}
        self._on_unroutable = on_unroutable
        self._on_closed = on_closed
        self._next_tag = 1
        self._oldest = 1
        self.is_open = True
        # A channel may go on refusing for a queue that was full once, also when it is empty and without the
        # policy that limited it (seen on RabbitMQ 3.10.8); another one on the same connection does not.
        self.is_refusing = False
        """Set by a refusal: it is written on no more, and closes with the last answer."""
        self._beginnings: dict[topology.Route, bytes] = {}
        self._wire = wire
        self._channel = wire.channel()
        self._channel.add_on_close_callback(self._closed)
        self._channel.add_on_return_callback(self._returned)
        wire.call(lambda done: self._channel.confirm_delivery(self._answered, done), self._channel)
        wire.on_confirms(self._channel.channel_number, self._confirmed)

    def publish(self, ticket: Ticket) -> None:
        """Write a ticket's publication; its answer comes later."""
        # All frames of a message are written or, if one cannot be encoded, none: only a written message has a
        # number. Its confirm cannot come before the next pump.
        try:
            self._write(ticket.publication)
        except Exception as error:
            if not self._channel.is_open:  # nothing was written
                raise WireError(f"not written: {error!r}") from error
            ticket.end(Result.REFUSED, f"cannot be encoded: {error!r}")
            return
        self.in_flight[self._next_tag] = ticket
        self._next_tag += 1

    def _write(self, publication: Publication) -> None:
        """Write a message; a small one to a queue past pika's channel, which costs as much as encoding it."""
        route, number = route_of(publication), self._next_tag
        is_small = 0 < len(publication.body) <= _ONE_FRAME and not route.exchange
        if not is_small or not self._channel.is_open:
            properties = properties_of(publication, number)
            self._channel.basic_publish(*route, publication.body, properties, mandatory=True)
            return
        channel = self._channel.channel_number
        begin = self._beginnings.get(route)
        if begin is None:
            begin = self._beginnings[route] = beginning(channel, *route)
        self._wire.write(begin + content(channel, publication, number))

    def _returned(self, _channel: Channel, method: Any, properties: Any, _body: bytes) -> None:
        """Note that nobody wanted it; the broker sends this before the confirm of the same message."""
        # By its number: the message id does not tell two publishes of one message apart.
        number = properties.correlation_id
        ticket = self.in_flight.get(int(number)) if number else None
        if ticket is not None:
            ticket.returned = True
            ticket.reason = f"unroutable: {method.reply_code} {method.reply_text}"

    def _answered(self, frame: Any) -> None:
        method = frame.method
        tag, acked = method.delivery_tag, isinstance(method, pika.spec.Basic.Ack)
        self._ended(tag, method.multiple, acked=acked)

    def _confirmed(self, tag: int, is_multiple: bool) -> None:
        self._ended(tag, is_multiple, acked=True)

    def _ended(self, tag: int, is_multiple: bool, *, acked: bool) -> None:
        if is_multiple:
            while self._oldest <= tag:
                self._end(self._oldest, acked)
                self._oldest += 1
        else:
            self._end(tag, acked)
        if self.is_refusing and not self.in_flight:
            self._close()

    def _close(self) -> None:
        """Leave the next publish to another channel."""
        self.is_open = self.is_refusing = False
        if self._channel.is_open:
            self._channel.close()

    def _end(self, tag: int, acked: bool) -> None:
        ticket = self.in_flight.pop(tag, None)
        if ticket is None:
            return
        if not acked:
            self.is_refusing = True
            ticket.end(
                Result.REFUSED,
                f"queue {ticket.publication.queue!r} refused it (nack): full, or without a leader",
            )
        elif not ticket.returned:
            ticket.end(Result.CONFIRMED)
        elif ticket.redeclared:
            ticket.end(Result.REFUSED, ticket.reason)
        else:
            self._on_unroutable(ticket)

    def _closed(self, _channel: Channel, reason: BaseException) -> None:
        closed = closed_channel(reason)
        self.is_open = self.is_refusing = False
        self._wire.on_confirms(self._channel.channel_number, None)
        if closed.code == 0:
            self.lose(closed.text)
        else:
            lost, self.in_flight = list(self.in_flight.values()), {}
            self._blame(lost, closed)
        self._on_closed(closed)

    def lose(self, reason: str) -> None:
        """The connection went: whatever is in flight may be stored or not."""
        lost, self.in_flight = list(self.in_flight.values()), {}
        for ticket in lost:
            ticket.end(Result.UNKNOWN, f"the connection went before the confirm: {reason}")

    def _blame(self, lost: list[Ticket], closed: ChannelClosed) -> None:
        """Tell tickets what a closed channel means: refused for the certain cause, unknown for the others."""
        suspects = _suspects(lost, closed)
        for ticket in lost:
            is_cause = is_too_large(ticket, closed) or suspects == [ticket]
            if is_cause and _NO_EXCHANGE.search(closed.text) and not ticket.redeclared:
                self._on_unroutable(ticket)
            elif is_cause:
                ticket.end(Result.REFUSED, f"the broker refused it: {closed}")
            else:
                ticket.end(Result.UNKNOWN, f"another message closed the channel before the confirm: {closed}")


def _suspects(lost: list[Ticket], closed: ChannelClosed) -> list[Ticket]:
    """Return the tickets that can have closed a channel."""
    missing = _NO_EXCHANGE.search(closed.text)
    if missing is None:
        return lost
    return [ticket for ticket in lost if route_of(ticket.publication).exchange == missing[1]]


def is_too_large(ticket: Ticket, closed: ChannelClosed) -> bool:
    """Whether this ticket is above the size that the broker named when it closed the channel."""
    limit = size_limit(closed)
    return limit is not None and len(ticket.publication.body) > limit


def size_limit(closed: ChannelClosed) -> int | None:
    """Return the largest message the broker takes, if that is what it closed the channel for."""
    match = TOO_LARGE.search(closed.text)
    return int(match[2]) if match else None
