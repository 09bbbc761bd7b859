"""What is done on the publisher's connection? Lanes are written, answers are read, tickets end.

By one thread at a time, whichever has the turn; what any thread may ask and do comes first, apart. Only the
wait for answers may go on without the turn: it touches nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pika

from ..errors import TopologyError
from ..logs import get_logger
from .confirms import ConfirmChannel, size_limit
from .declare import declare
from .events import Seen
from .lane import Lane
from .lanes import Lanes
from .publication import Result, Ticket
from .reconnect import Reconnect
from .timed_calls import TimedCalls
from .topology import Topology
from .wire import ChannelClosed, Wire, WireError

log = get_logger(__name__)

CLOSED: Final = "the publisher was closed"
_IDLE_SECONDS: Final = 5.0
_NORMAL: Final = 200
_NOT_FOUND: Final = 404


class Publishing:
    """The publisher's connection, and what is to be written on it.

    Parameters:
        parameters: the broker's nodes.
        topologies: what each queue needs, declared before its first publish on a connection.
        name: shown in RabbitMQ's list of connections.
        stop: set when nothing is to be published any more.

    Attributes:
        wire: the connection, None while there is none.
        calls: what is to be done after a while.
    """

    def __init__(
        self,
        parameters: Sequence[pika.connection.Parameters],
        topologies: Mapping[str, Topology],
        name: str,
        stop: threading.Event,
    ) -> None:
        self._parameters = parameters
        self._topologies = topologies
        self._name = name
        self._stop = stop
        self.wire: Wire | None = None
        self._lanes = Lanes()
        self.calls = TimedCalls()
        self._polling = False
        self._lost: deque[Wire] = deque()
        self._declared: set[str] = set()
        self._blocked: str | None = None
        self._reconnect = Reconnect("publisher")

    # --- any thread ---

    @property
    def problem(self) -> str:
        """Why nothing is being published now; empty if nothing is known to be wrong."""
        if self._blocked is not None:
            return f"the broker blocks publishing: {self._blocked}"
        return self._reconnect.problem

    @property
    def is_writable(self) -> bool:
        """Whether the connection stands and no alarm blocks it, as far as is known."""
        return self.wire is not None and self._blocked is None

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Take tickets in."""
        self._lanes.add(tickets)

    def wake(self) -> None:
        """Have the thread that waits for the socket, if one does, look at what came in."""
        wire = self.wire
        if self._polling and wire is not None:
            self._polling = False
            wire.wake()

    @property
    def has_work(self) -> bool:
        """Whether something waits to be written or answered."""
        return self.calls.has_new or bool(self._lost) or self._lanes.has_work

    @property
    def seconds_until_call(self) -> float:
        """How long until the next call is due, or a while if there is none."""
        return min(_IDLE_SECONDS, self.calls.seconds_left)

    # --- the thread that has the turn ---

    def round(
        self, seconds: float, *, may_open: bool = True, wait: Callable[[Wire, float], Seen] | None = None
    ) -> None:
        """Write what came in, then read what the broker answered.

        Parameters:
            seconds: wait at most so long for an answer.
            may_open: whether channels may be opened and queues declared, which takes seconds if the broker is
                slow. Defaults to True.
            wait: waits for the answer, while others may write. Defaults to nobody else.

        Raises:
            WireError: the connection went.
        """
        self.calls.run_due()
        wire = self.wire
        if wire is None:
            return
        lanes = self._write(wire, may_open)
        self._polling = True
        is_urgent = self._lanes.has_new or self.calls.has_new or self._stop.is_set()
        if is_urgent or any(lane.can_write for lane in lanes):
            seconds = 0
        seconds = min(seconds, self.seconds_until_call)
        if wait is not None and seconds and wire.can_wait and wire.flush():
            seen = wait(wire, seconds)
            if wire is self.wire:  # nobody has given it up meanwhile
                wire.handle(seen)
        else:
            wire.pump(seconds)
        self._polling = False
        if wire is self.wire and not wire.is_open:
            raise WireError(wire.failure)

    def write(self) -> bool:
        """Write what came in, and leave the answers to whoever waits for the socket.

        Returns:
            False if something is left to write.

        Raises:
            WireError: the connection went.
        """
        wire = self.wire
        if wire is None:
            return False
        lanes = self._write(wire, may_open=False)
        return wire.flush() and not any(lane.waiting for lane in lanes)

    @property
    def can_write(self) -> bool:
        """Whether one thread may write while another waits for the socket."""
        return self.wire is not None and self.wire.can_wait

    def _write(self, wire: Wire, may_open: bool) -> list[Lane]:
        """Write what came in on the lanes that can be written on, and return these."""
        self._lanes.sort()
        lanes = self._writable_lanes(may_open)
        for lane in lanes:
            if lane.waiting:
                lane.write(lambda ticket: self._prepare(wire, ticket), lambda: self._open_channel(wire))
        return lanes

    def _writable_lanes(self, may_open: bool) -> list[Lane]:
        if self._blocked is not None:
            return []
        return [lane for lane in self._lanes if may_open or self._is_prepared(lane)]

    def _is_prepared(self, lane: Lane) -> bool:
        """Whether a lane can be written on without waiting for the broker first."""
        return lane.is_open and lane.queue in self._declared

    def is_prepared_for(self, tickets: Sequence[Ticket]) -> bool:
        """Whether tickets can be written without opening a channel or declaring a queue first."""
        return all(
            (lane := self._lanes.of(ticket)) is not None and self._is_prepared(lane) for ticket in tickets
        )

    def needs_opening(self) -> bool:
        """Whether something waits for a channel to be opened or a queue to be declared, or declared anew."""
        self._lanes.sort()
        return any(lane.waiting and not self._is_prepared(lane) for lane in self._lanes)

    def look(self) -> None:
        """Read what the broker said while nobody looked, such as that it closes the connection.

        Raises:
            WireError: the connection went.
        """
        wire = self.wire
        if wire is not None:
            wire.pump(0)
            if not wire.is_open:
                raise WireError(wire.failure)

    def connect(self) -> None:
        """Connect, if something waits to be written and it is time for another try."""
        self._lanes.sort()
        if not self._lanes.have_waiting() or self._stop.wait(self._reconnect.pause()):
            return
        self._lanes.sort()
        if not self._lanes.have_waiting():  # their senders gave up meanwhile
            return
        try:
            self.wire = Wire(self._parameters, self._name, self._on_blocked)
        except Exception as error:  # whatever it is, it is tried again, and not at once
            self._reconnect.failed(str(error) or repr(error))
            return
        self._reconnect.succeeded(self.wire.address)

    def lose(self, reason: str) -> None:
        """Give the connection up: what is in flight may be stored or not, what waits goes on waiting.

        It is closed by `close_lost`, because a broker that does not answer holds that up for seconds.
        """
        wire, self.wire = self.wire, None
        self._declared.clear()
        self._blocked = None
        self._lanes.lose(reason)
        if wire is not None:
            self._lost.append(wire)
            if self._polling:
                wire.wake()
            if not self._stop.is_set():
                self._reconnect.lost(reason)

    def close_lost(self) -> None:
        """Close what was given up."""
        while self._lost:
            self._lost.popleft().close()

    def refuse_all(self) -> None:
        """End what was not written: nobody will."""
        self._lanes.refuse_all(CLOSED)

    def _on_blocked(self, reason: str | None) -> None:
        if self.wire is None:
            return  # said by one that was given up
        self._blocked = reason
        log.warning("publisher.blocked" if reason else "publisher.unblocked", reason=reason)

    def _prepare(self, wire: Wire, ticket: Ticket) -> bool:
        """Declare what a ticket's queue needs and claim the ticket; False if it is not to be written.

        In this order: a sender that gives up while a slow broker declares knows that nothing was written.
        """
        refusal = ""
        if ticket.is_abandoned:
            return False
        try:
            self._declare(wire, ticket.publication.queue)
        except (TopologyError, ChannelClosed) as error:
            if isinstance(error, ChannelClosed) and error.code == 0:
                raise WireError(error.text) from error
            refusal = str(error)
        if not ticket.claim():
            return False
        if not refusal and ticket.wanted is not None and not ticket.wanted():
            refusal = "its delivery is no longer ours"
        if refusal:
            ticket.end(Result.REFUSED, refusal)
        return not refusal

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
        self._lanes.add([ticket])

    def _open_channel(self, wire: Wire) -> ConfirmChannel:
        try:
            return ConfirmChannel(wire, self._on_unroutable, self._on_channel_closed)
        except ChannelClosed as error:
            raise WireError(f"cannot open a channel: {error}") from error

    def _on_channel_closed(self, closed: ChannelClosed) -> None:
        limit = size_limit(closed)
        if limit is not None:
            self._lanes.limit(limit)
        if closed.code == _NOT_FOUND:
            self._declared.clear()
        if closed.code not in {0, _NORMAL}:
            log.warning("publisher.channel_closed", reason=str(closed))
