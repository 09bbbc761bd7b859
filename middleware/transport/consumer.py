"""How does a worker get its jobs, and give back what became of them?

One connection per consumed queue, driven by the queue's consumer thread. Each channel has a link of its
own, to which its deliveries and their acknowledgements belong.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pika
from dramatiq.broker import Consumer, MessageProxy
from pika.channel import Channel

from ..errors import TopologyError
from ..logs import get_logger
from .acknowledgements import ChannelLink
from .declare import declare
from .delivery import Delivery
from .gathering import Gathering
from .incoming import incoming
from .queues import Queue
from .reconnect import Reconnect
from .settlement import Settlement
from .topology import Topology
from .watch import QueueWatch
from .wire import ChannelClosed, Wire, WireError, closed_channel

log = get_logger(__name__)

_CLOSE_SECONDS: Final = 5.0


class QueueConsumer(Consumer):
    """Iterates over a queue's deliveries for Dramatiq's consumer thread, and never raises at it.

    Parameters:
        parameters: the broker's nodes.
        queue: the queue and its prefetch.
        topology: what the queue needs, declared at every connect.
        settlement: carries out outcomes.
        knows_actor: whether an actor of that name is declared here.
        fatal: ends the process; called with a text when the broker's queue drifted from the declared one.
        idle_ms: `__next__` returns None at least this often.
        name: shown in RabbitMQ's list of connections.
    """

    def __init__(
        self,
        *,
        parameters: Sequence[pika.connection.Parameters],
        queue: Queue,
        topology: Topology,
        settlement: Settlement,
        knows_actor: Callable[[str], bool],
        fatal: Callable[[str], None],
        idle_ms: int,
        name: str,
    ) -> None:
        self._parameters = parameters
        self._queue = queue
        self._topology = topology
        self._settlement = settlement
        self._knows_actor = knows_actor
        self._fatal = fatal
        self._idle_seconds = idle_ms / 1000
        self._name = name
        self._reconnect = Reconnect(f"consumer {queue.name}")
        self._wire: Wire | None = None
        self._channel: Channel | None = None
        self._link: ChannelLink | None = None
        self._watch: QueueWatch | None = None
        self._buffer: deque[Delivery] = deque()
        self._gathering = Gathering(queue.prefetch)
        self._polling = False
        self._wakes_at = 1
        self._draining = False
        self._cancelled = False
        self._not_before = 0.0

    # --- called by Dramatiq's threads ---

    def __next__(self) -> MessageProxy | None:
        """Return the next delivery, None when nothing came for a while."""
        if self._buffer and not self._draining:
            return self._buffer.popleft()
        deadline = time.monotonic() + self._idle_seconds
        while True:
            remaining = deadline - time.monotonic()
            if self._wire is None and not self._connect(remaining):
                return None
            self._round(max(0.0, remaining))
            if self._buffer:
                return self._buffer.popleft()
            if time.monotonic() >= deadline:
                return None

    def ack(self, message: MessageProxy) -> None:
        """Carry out the delivery's stored outcome, whatever Dramatiq called this for. Never raises."""
        self._settlement.settle(message)  # type: ignore[arg-type]  # this consumer yields deliveries only

    nack = ack

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give back deliveries that no thread has started."""
        for message in messages:
            message.link.requeue(message.tag)

    def drain(self) -> None:
        """Take no more deliveries; those that are not handed out yet go back. Safe from any thread."""
        self._draining = True
        self._wake()

    def close(self) -> None:
        """Send what is settled and close the connection; the broker puts back the rest."""
        wire, link = self._wire, self._link
        if wire is None:
            return
        give_up = time.monotonic() + _CLOSE_SECONDS
        try:
            # A retry whose confirm is under way would be stored and its original redelivered.
            while self._settlement.is_publishing and time.monotonic() < give_up and wire.is_open:
                wire.pump(0.02)
            if link is not None and link.alive:
                self._flush(link)
                wire.pump(0)
        except Exception as error:
            log.warning("consumer.close_failed", queue=self._queue.name, error=repr(error))
        self._drop("closed")
        wire.close()

    def _nudge(self, settled: int) -> None:
        """Wake the consumer's thread if so many settled deliveries are not to wait."""
        if settled >= self._wakes_at:
            self._wake()

    def _wake(self) -> None:
        """Wake the consumer's thread if it waits for the socket."""
        if self._polling:
            self._polling = False
            wire = self._wire
            if wire is not None:
                wire.wake()

    # --- the consumer's thread ---

    def _connect(self, remaining: float) -> bool:
        """Try to connect when it is time to; return whether there is a connection."""
        wait = self._not_before - time.monotonic()
        if wait > 0:
            time.sleep(max(0.0, min(wait, remaining)))
            return False
        try:
            self._open()
        except TopologyError as error:
            self._close_wire()
            self._fatal(str(error))
            return False
        except (WireError, ChannelClosed, OSError) as error:
            self._close_wire()
            self._reconnect.failed(str(error))
            self._not_before = time.monotonic() + self._reconnect.pause()
            return False
        return True

    def _open(self) -> None:
        wire = self._wire = Wire(self._parameters, self._name)
        declare(wire, self._topology)
        channel = wire.channel()
        wire.call(lambda done: channel.basic_qos(prefetch_count=self._queue.prefetch, callback=done), channel)
        link = ChannelLink(self._nudge)
        channel.add_on_close_callback(lambda _channel, reason: self._on_channel_closed(link, reason))
        channel.add_on_cancel_callback(lambda _frame: self._on_cancelled(link))
        self._channel, self._link = channel, link
        self._cancelled = self._draining
        if not self._draining:
            wire.call(
                lambda done: channel.basic_consume(
                    self._queue.name, self._on_message, consumer_tag=self._name, callback=done
                ),
                channel,
            )
            self._watch = QueueWatch(wire, self._topology)
        self._reconnect.succeeded(wire.address)

    def _round(self, seconds: float) -> None:
        """Send what is settled, then wait for the socket, a settled delivery or the time."""
        wire, link = self._wire, self._link
        if wire is None or link is None:
            return
        try:
            if self._draining and not self._cancelled:
                self._cancel(wire)
            self._flush_when_due(link)
            self._check_drift()
            self._wait(wire, link, 0 if self._draining and not self._cancelled else seconds)
            self._flush_when_due(link)
        except (pika.exceptions.AMQPError, WireError, OSError) as error:
            self._lose(repr(error))
            return
        if not link.alive or not wire.is_open:
            self._lose(wire.failure if not wire.is_open else "the broker closed the channel")

    def _check_drift(self) -> None:
        """End the process if the queue drifted from its declaration."""
        watch = self._watch
        if watch is None or self._draining:
            return
        if watch.drift is not None:
            self._fatal(str(watch.drift))
        watch.ask_when_due()

    def _wait(self, wire: Wire, link: ChannelLink, seconds: float) -> None:
        # The first settled delivery ends the wait; those after it join that one until there are enough.
        self._wakes_at = self._gathering.enough if link.settled else 1
        self._polling = True
        wire.pump(min(seconds, self._seconds_left(link)))
        self._polling = False

    def _seconds_left(self, link: ChannelLink) -> float:
        if self._draining and link.settled:
            return 0.0  # nothing follows that it could wait for
        return self._gathering.seconds_left(link.settled, time.monotonic())

    def _flush_when_due(self, link: ChannelLink) -> None:
        if self._seconds_left(link) == 0.0:
            self._flush(link)

    def _flush(self, link: ChannelLink) -> None:
        channel = self._channel
        if channel is not None and link.alive and link.settled:
            self._gathering.sent(time.monotonic())
            link.send(channel)

    def _on_message(self, _channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        link = self._link
        if link is None:
            return
        link.delivered(method.delivery_tag)
        if self._draining:
            link.requeue(method.delivery_tag)
            return
        delivery = incoming(
            body,
            properties.headers,
            queue=self._queue.name,
            message_id=properties.message_id,
            link=link,
            tag=method.delivery_tag,
            settlement=self._settlement,
            knows_actor=self._knows_actor,
            redelivered=method.redelivered,
        )
        if delivery is not None:
            self._buffer.append(delivery)

    def _cancel(self, wire: Wire) -> None:
        channel = self._channel
        if channel is not None and channel.is_open:
            self._cancelled = True
            channel.basic_cancel(self._name)
        while self._buffer:
            delivery = self._buffer.popleft()
            delivery.link.requeue(delivery.tag)

    def _on_channel_closed(self, link: ChannelLink, reason: BaseException) -> None:
        link.alive = False
        closed = closed_channel(reason)
        if closed.code and "timed out" in closed.text:
            log.error("consumer.acknowledgement_timed_out", queue=self._queue.name, reason=str(closed))

    def _on_cancelled(self, link: ChannelLink) -> None:
        """The queue is gone, or (4.3) a delivery was held too long: begin again with a new channel."""
        link.alive = False

    def _lose(self, reason: str) -> None:
        self._reconnect.lost(reason)
        self._not_before = time.monotonic() + self._reconnect.pause()
        self._drop(reason)
        self._close_wire()

    def _drop(self, _reason: str) -> None:
        """Forget the channel and what it delivered: all of that is the broker's again."""
        if self._link is not None:
            self._link.alive = False
        self._link = None
        self._channel = None
        self._watch = None
        self._buffer.clear()

    def _close_wire(self) -> None:
        wire, self._wire = self._wire, None
        if self._link is not None:
            self._drop("")
        if wire is not None:
            wire.close()
