"""How does a job get onto the broker's disks, or its sender an error that says what is certain?

One connection per process and one thread that owns it. Any number of threads hand in tickets; the thread
writes them at once and the broker's confirms end them. Nothing is published twice: a ticket is written
at most once, unless the broker said that no queue took it.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pika

from ..logs import get_logger
from .confirms import ConfirmChannel, size_limit
from .declare import declare
from .publication import READY, Result, Ticket
from .reconnect import Reconnect
from .topology import Topology
from .wire import ChannelClosed, Wire, WireError

log = get_logger(__name__)

_LARGE: Final = 16 * 1024
"""Bodies above this go alone: if the broker refuses one, nothing else is in flight beside it."""
_IDLE_SECONDS: Final = 5.0
_NORMAL: Final = 200
_BURST: Final = 500
_MOST_IN_FLIGHT: Final = 4000
"""Unanswered publishes at most: what a lost connection can leave unknown."""


class Publisher:
    """Publishes with confirms over one connection; safe from any thread and after a fork.

    Parameters:
        parameters: the broker's nodes.
        topologies: what each queue needs, declared before its first publish on a connection.
        name: shown in RabbitMQ's list of connections.
    """

    def __init__(
        self, parameters: Sequence[pika.connection.Parameters], topologies: Mapping[str, Topology], name: str
    ) -> None:
        self._parameters = parameters
        self._topologies = topologies
        self._name = name
        self._reset()
        reference = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _reset_in_child(reference))

    def _reset(self) -> None:
        """Start without connection, thread and tickets; in a forked child they belong to the parent."""
        self._inbox: deque[Ticket] = deque()
        self._calls: deque[tuple[float, Callable[[], None]]] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._waiting = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._polling = False
        self._wire: Wire | None = None
        self._channels: dict[str, ConfirmChannel] = {}
        self._declared: set[str] = set()
        self._unroutable: list[Ticket] = []
        self._alone: deque[Ticket] = deque()
        self._largest = _LARGE
        self._blocked: str | None = None
        self._reconnect = Reconnect("publisher")

    @property
    def problem(self) -> str:
        """Why nothing is being published now; empty if nothing is known to be wrong."""
        if self._blocked is not None:
            return f"the broker blocks publishing: {self._blocked}"
        return self._reconnect.problem

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Hand in tickets; each one's `done` is called when it ended, on the publisher's thread.

        A ticket whose `claimed` lock somebody else takes before it is written is left alone.
        """
        if self._stop.is_set():
            for ticket in tickets:
                self._refuse(ticket, "the broker object was closed")
            return
        self._inbox.extend(tickets)
        self._nudge()

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Run a callable on the publisher's thread, for repeating a publish after a while."""
        self._calls.append((time.monotonic() + seconds, call))
        self._nudge()

    def close(self) -> None:
        """Close the connection; tickets that were not written end as refused."""
        self._stop.set()
        self._nudge()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _nudge(self) -> None:
        thread, wire = self._thread, self._wire
        if thread is None or not thread.is_alive():
            self._start()
        elif self._polling and wire is not None:
            self._polling = False
            wire.wake()
        elif wire is None:
            with self._waiting:
                self._waiting.notify()

    def _start(self) -> None:
        with self._waiting:
            if self._stop.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._run, name="jobs-publisher", daemon=True)
            self._thread.start()

    # --- the publisher's thread ---

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._run_due()
                if self._wire is None:
                    self._connect_when_needed()
                else:
                    self._work(self._wire)
            except WireError as error:
                self._lost(str(error))
            except Exception as error:
                log.critical("publisher.failed", error=repr(error), exc_info=True)
                self._lost(repr(error))
        self._lost("the publisher was closed")
        while self._inbox:
            self._refuse(self._inbox.popleft(), "the publisher was closed")

    def _run_due(self) -> None:
        """Run the calls whose time has come; they outlive connections, so they are not the loop's timers."""
        while self._calls:
            due, call = self._calls.popleft()
            heapq.heappush(self._later, (due, next(self._numbers), call))
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()

    def _until_next_call(self) -> float:
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else _IDLE_SECONDS

    def _connect_when_needed(self) -> None:
        with self._waiting:
            if not self._inbox and not self._calls:
                self._waiting.wait(self._until_next_call())
                return
        if self._stop.wait(self._reconnect.pause()):
            return
        self._drop_abandoned()
        try:
            self._wire = Wire(self._parameters, self._name, self._on_blocked)
        except (WireError, OSError) as error:
            self._reconnect.failed(str(error))
            return
        self._reconnect.succeeded(self._wire.address)

    def _drop_abandoned(self) -> None:
        """Forget tickets whose senders gave up, so that a long outage does not pile them up."""
        for _ in range(len(self._inbox)):
            ticket = self._inbox.popleft()
            if ticket.redeclared or not ticket.claimed.locked():
                self._inbox.append(ticket)

    def _on_blocked(self, reason: str | None) -> None:
        self._blocked = reason
        log.warning("publisher.blocked" if reason else "publisher.unblocked", reason=reason)

    def _lost(self, reason: str) -> None:
        wire, self._wire = self._wire, None
        channels, self._channels = self._channels, {}
        self._declared.clear()
        self._blocked = None
        unroutable, self._unroutable = self._unroutable, []
        for channel in channels.values():
            lost, channel.in_flight = list(channel.in_flight.values()), {}
            for ticket in lost:
                ticket.end(Result.UNKNOWN, f"the connection went before the confirm: {reason}")
        for ticket in unroutable:
            ticket.end(Result.REFUSED, ticket.reason)
        for ticket in self._alone:
            self._inbox.appendleft(ticket)
        self._alone.clear()
        if wire is not None:
            wire.close()
            if not self._stop.is_set():
                self._reconnect.lost(reason)

    def _work(self, wire: Wire) -> None:
        """One round: write what came in, then read what the broker answered."""
        while self._unroutable:
            self._redeclare(wire, self._unroutable.pop())
        if self._blocked is None:
            self._write(wire)
        self._polling = True
        if (
            (self._inbox and self._blocked is None and self._in_flight() < _MOST_IN_FLIGHT)
            or self._unroutable
            or self._calls
            or self._stop.is_set()
        ):
            self._polling = False
            wire.pump(0)
        else:
            wire.pump(self._until_next_call())
            self._polling = False
        if not wire.is_open:
            raise WireError(wire.failure)

    def _write(self, wire: Wire) -> None:
        inbox = self._inbox
        for _ in range(min(len(inbox), _BURST)):  # then read, so that confirms are not starved
            if self._in_flight() >= _MOST_IN_FLIGHT:
                break
            self._place(wire, inbox.popleft())
        while self._alone and not self._channel(wire, "alone").in_flight:
            self._publish(wire, "alone", self._alone.popleft())

    def _in_flight(self) -> int:
        return sum(len(channel.in_flight) for channel in self._channels.values())

    def _place(self, wire: Wire, ticket: Ticket) -> None:
        publication = ticket.publication
        if publication.alone or len(publication.body) > self._largest:
            self._alone.append(ticket)
        else:
            # The default exchange always exists; a named one that is gone closes its channel.
            self._publish(wire, "ready" if publication.place == READY else "routed", ticket)

    def _publish(self, wire: Wire, channel: str, ticket: Ticket) -> None:
        if not (ticket.redeclared or ticket.claimed.acquire(blocking=False)):
            return  # its sender gave up
        if ticket.wanted is not None and not ticket.wanted():
            ticket.end(Result.REFUSED, "its delivery is no longer ours")
            return
        try:
            if ticket.publication.queue not in self._declared:
                self._declare(wire, ticket.publication.queue)
            self._channel(wire, channel).publish(ticket)
        except WireError as error:
            ticket.end(Result.REFUSED, f"not written: {error}")
            raise
        except Exception as error:
            ticket.end(Result.REFUSED, str(error) or repr(error))

    def _declare(self, wire: Wire, queue: str) -> None:
        topology = self._topologies.get(queue)
        if topology is not None:
            declare(wire, topology)
        self._declared.add(queue)

    def _redeclare(self, wire: Wire, ticket: Ticket) -> None:
        """Declare what a ticket's queue needs and write it once more: nothing stored the first one."""
        ticket.returned, ticket.redeclared = False, True
        self._declared.discard(ticket.publication.queue)
        self._inbox.appendleft(ticket)

    def _channel(self, wire: Wire, name: str) -> ConfirmChannel:
        channel = self._channels.get(name)
        if channel is None or not channel.is_open:
            channel = ConfirmChannel(wire, self._unroutable.append, self._on_channel_closed)
            self._channels[name] = channel
        return channel

    def _on_channel_closed(self, closed: ChannelClosed) -> None:
        limit = size_limit(closed)
        if limit is not None:
            self._largest = min(self._largest, limit)
        if closed.code not in {0, _NORMAL}:
            log.warning("publisher.channel_closed", reason=str(closed))

    @staticmethod
    def _refuse(ticket: Ticket, reason: str) -> None:
        if ticket.redeclared or ticket.claimed.acquire(blocking=False):
            ticket.end(Result.REFUSED, reason)


def _reset_in_child(reference: weakref.ref[Publisher]) -> None:
    publisher = reference()
    if publisher is not None:
        publisher._reset()
