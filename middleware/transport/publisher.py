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

from ..errors import TopologyError
from ..logs import get_logger
from .confirms import ConfirmChannel, size_limit
from .declare import declare
from .lane import Lane, kind_of
from .publication import Result, Ticket
from .reconnect import Reconnect
from .topology import Topology
from .wire import ChannelClosed, Wire, WireError

log = get_logger(__name__)

_LARGE: Final = 16 * 1024
"""Bodies above this go alone: if the broker refuses one, nothing else is in flight beside it."""
_IDLE_SECONDS: Final = 5.0
_DROP_SECONDS: Final = 1.0
_NORMAL: Final = 200
_NOT_FOUND: Final = 404
_CLOSED: Final = "the publisher was closed"


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
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._declared: set[str] = set()
        self._next_drop = 0.0
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
        self._inbox.extend(tickets)
        self._nudge()
        if self._stop.is_set() and not self._is_running():
            self._refuse_all()

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

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _nudge(self) -> None:
        wire = self._wire
        if not self._is_running():
            self._start()
        elif self._polling and wire is not None:
            self._polling = False
            wire.wake()
        elif wire is None:
            with self._waiting:
                self._waiting.notify()

    def _start(self) -> None:
        with self._waiting:
            if self._stop.is_set() or self._is_running():
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
        self._lost(_CLOSED)
        self._refuse_all()

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
            if not self._inbox and not self._calls and not self._has_waiting():
                self._waiting.wait(self._until_next_call())
                return
        if self._stop.wait(self._reconnect.pause()):
            return
        self._sort()
        self._drop_abandoned()
        if not self._has_waiting():
            return
        try:
            self._wire = Wire(self._parameters, self._name, self._on_blocked)
        except Exception as error:  # whatever it is, it is tried again, and not at once
            self._reconnect.failed(str(error) or repr(error))
            return
        self._reconnect.succeeded(self._wire.address)

    def _has_waiting(self) -> bool:
        return any(lane.waiting for lane in self._lanes.values())

    def _drop_abandoned(self) -> None:
        now = time.monotonic()
        if now >= self._next_drop:
            self._next_drop = now + _DROP_SECONDS
            for lane in self._lanes.values():
                lane.drop_abandoned()

    def _on_blocked(self, reason: str | None) -> None:
        self._blocked = reason
        log.warning("publisher.blocked" if reason else "publisher.unblocked", reason=reason)

    def _lost(self, reason: str) -> None:
        wire, self._wire = self._wire, None
        self._declared.clear()
        self._blocked = None
        for lane in self._lanes.values():
            lane.lose(reason)
        if wire is not None:
            wire.close()
            if not self._stop.is_set():
                self._reconnect.lost(reason)

    def _work(self, wire: Wire) -> None:
        """One round: write what came in, then read what the broker answered."""
        self._sort()
        self._drop_abandoned()
        if self._blocked is None:
            for lane in list(self._lanes.values()):
                lane.write(lambda ticket: self._prepare(wire, ticket), lambda: self._open_channel(wire))
        self._polling = True
        if self._inbox or self._calls or self._can_write() or self._stop.is_set():
            self._polling = False
            wire.pump(0)
        else:
            wire.pump(self._until_next_call())
            self._polling = False
        if not wire.is_open:
            raise WireError(wire.failure)

    def _can_write(self) -> bool:
        return self._blocked is None and any(lane.can_write for lane in self._lanes.values())

    def _sort(self) -> None:
        """Put what came in, and what is to be written again, into its lane."""
        while self._inbox:
            ticket = self._inbox.popleft()
            publication = ticket.publication
            kind = kind_of(publication, self._largest)
            lane = self._lanes.get((publication.queue, kind))
            if lane is None:
                lane = self._lanes[publication.queue, kind] = Lane(kind)
            lane.waiting.append(ticket)

    def _prepare(self, wire: Wire, ticket: Ticket) -> bool:
        """Claim a ticket and declare what its queue needs; False if it is not to be written."""
        if not ticket.claim():
            return False
        if ticket.wanted is not None and not ticket.wanted():
            ticket.end(Result.REFUSED, "its delivery is no longer ours")
            return False
        try:
            self._declare(wire, ticket.publication.queue)
        except (TopologyError, ChannelClosed) as error:
            if isinstance(error, ChannelClosed) and error.code == 0:
                raise WireError(error.text) from error
            ticket.end(Result.REFUSED, str(error))
            return False
        return True

    def _declare(self, wire: Wire, queue: str) -> None:
        """Declare what a queue needs, once a connection and again when something of it is found missing."""
        if queue in self._declared:
            return
        topology = self._topologies.get(queue)
        if topology is not None:
            declare(wire, topology)
        self._declared.add(queue)

    def _on_unroutable(self, ticket: Ticket) -> None:
        """Have a ticket's queue declared and write it once more: nothing stored the first one."""
        ticket.returned, ticket.redeclared = False, True
        self._declared.discard(ticket.publication.queue)
        self._inbox.append(ticket)

    def _open_channel(self, wire: Wire) -> ConfirmChannel:
        try:
            return ConfirmChannel(wire, self._on_unroutable, self._on_channel_closed)
        except ChannelClosed as error:
            raise WireError(f"cannot open a channel: {error}") from error

    def _on_channel_closed(self, closed: ChannelClosed) -> None:
        limit = size_limit(closed)
        if limit is not None:
            self._largest = min(self._largest, limit)
        if closed.code == _NOT_FOUND:
            self._declared.clear()
        if closed.code not in {0, _NORMAL}:
            log.warning("publisher.channel_closed", reason=str(closed))

    def _refuse_all(self) -> None:
        """End what was not written: nobody will."""
        self._sort()
        for lane in self._lanes.values():
            while lane.waiting:
                ticket = lane.waiting.popleft()
                if ticket.claim():
                    ticket.end(Result.REFUSED, _CLOSED)


def _reset_in_child(reference: weakref.ref[Publisher]) -> None:
    publisher = reference()
    if publisher is not None:
        publisher._reset()
