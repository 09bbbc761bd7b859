"""How does a job get onto the broker's disks, or its sender an error that says what is certain?

One connection per process, driven by one thread at a time. A sender that finds it free takes the turn and
drives it until its own confirm is there, so that no other thread has to be woken for a job, and to wake it
again. The publisher's own thread takes the turn whenever something is left to do, and lends it while it waits
for the broker: senders write, and it reads the answers. All others hand in tickets. Nothing is published
twice: a ticket is written at most once, unless the broker said that no queue took it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

import pika

from ..logs import get_logger
from .delivery import current_delivery
from .events import Seen
from .publication import Result, Ticket
from .publishing import CLOSED, Publishing
from .sending import Countdown
from .topology import Topology
from .wire import Wire, WireError

log = get_logger(__name__)

_LOOK_SECONDS: Final = 1.0
"""How often the connection is looked at while nothing is sent: heartbeats, alarms, its end."""


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
        self._stop = threading.Event()
        self._publishing = Publishing(self._parameters, self._topologies, self._name, self._stop)
        self._turn = threading.RLock()
        self._is_driven = False
        """Somebody has the turn; only a hint, which spares the others an attempt to take it."""
        self._is_served = False
        """The publisher's thread reads the answers; it has the turn, except while it waits for one."""
        self._senders: set[int] = set()
        """Threads in the middle of a send: one of a signal's handler would wait for what they hold."""
        # No Event: a signal that raises in the middle of its `set()` would leave it locked for ever.
        self._called: SimpleQueue[None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def problem(self) -> str:
        """Why nothing is being published now; empty if nothing is known to be wrong."""
        return self._publishing.problem

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Hand in tickets; each one's `done` is called when it ended, by the thread that has the turn.

        A ticket whose `claimed` lock somebody else takes before it is written is left alone.
        """
        me = threading.get_ident()
        if me in self._senders:  # settlement, called by the sender that drives
            self._hand_in(tickets)
            return
        try:
            self._senders.add(me)
            self._hand_in(tickets)
        finally:  # first of all, with nothing before it that a signal could interrupt
            self._senders.discard(me)

    def _hand_in(self, tickets: Sequence[Ticket]) -> None:
        self._publishing.add(tickets)
        self._call()
        if self._stop.is_set() and not self._is_running():
            with self._turn:
                self._publishing.refuse_all()

    def drive(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        """Publish tickets on the caller's own thread, if it can have the turn at once.

        Parameters:
            tickets: of one send.
            countdown: told of each that ended.
            patience: seconds without any confirm after which it gives up.

        Returns:
            False if it did nothing: the connection is in use, down, blocked or not prepared for these queues,
            or the thread runs a job, whose interrupt must not land in the middle of a frame.

        Raises:
            BaseException: what a signal's handler raised meanwhile; the connection is given up.
        """
        me = threading.get_ident()
        if me in self._senders:
            _refuse_nested(tickets)
            return True
        if self._is_driven or current_delivery() is not None:
            return False
        try:
            self._senders.add(me)
            return self._take_turn(tickets, countdown, patience)
        finally:  # first of all, as above
            self._senders.discard(me)

    def _take_turn(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        outer = sys.exception()
        try:
            try:  # begins before the turn is taken: a signal may raise at any moment from then on
                return self._turn.acquire(blocking=False) and self._drive(tickets, countdown, patience)
            finally:  # first of all, as above
                self._turn.release()
        except RuntimeError as error:  # from `release`: the turn is somebody else's
            if error.__context__ is not None and error.__context__ is not outer:
                raise error.__context__ from None  # a signal's, in the place of which it was raised
            return False

    def _drive(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        publishing = self._publishing
        has_begun = False
        try:
            self._is_driven = True
            is_served = self._is_served
            if not is_served:
                publishing.look()
            if not self._can_begin(tickets) or (is_served and not publishing.can_write):
                return False
            has_begun = True
            publishing.add(tickets)
            if is_served:  # the publisher's thread waits for the answers, this sender's too
                if not publishing.write():
                    self._call()
                return True
            while countdown.left and publishing.wire is not None and not self._stop.is_set():
                seconds = countdown.seconds_left(patience)
                # What takes long is left to the publisher's thread, and it must not wait for this sender.
                if not seconds or publishing.needs_opening():
                    break
                publishing.round(seconds, may_open=False)
        except BaseException as error:
            self._give_up(error)
            if not isinstance(error, Exception):
                raise  # a signal's, in the middle of whatever it was
        finally:
            self._is_driven = False
            if publishing.has_work and not self._is_served:
                self._call()
        return has_begun

    def _can_begin(self, tickets: Sequence[Ticket]) -> bool:
        """Whether nothing but the writing of tickets is to be done."""
        publishing = self._publishing
        return publishing.is_writable and publishing.is_prepared_for(tickets) and not self._stop.is_set()

    def _give_up(self, error: BaseException) -> None:
        """Give up the connection; it is not known what of it still works."""
        if isinstance(error, Exception) and not isinstance(error, WireError):
            log.critical("publisher.failed", error=repr(error), exc_info=True)
        self._publishing.lose(str(error) if isinstance(error, WireError) else repr(error))

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Run a callable on the thread that has the turn then, for repeating a publish after a while."""
        self._publishing.calls.add(time.monotonic() + seconds, call)
        self._call()

    def close(self) -> None:
        """Close the connection; tickets that were not written end as refused."""
        self._stop.set()
        self._call()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _call(self) -> None:
        """Have somebody look at what came in: whoever has the turn, or the publisher's thread."""
        if not self._is_running():
            self._start()
        if self._called.empty():
            self._called.put(None)
        self._publishing.wake()

    def _start(self) -> None:
        with self._starting:
            if self._stop.is_set() or self._is_running():
                return
            self._thread = threading.Thread(target=self._run, name="jobs-publisher", daemon=True)
            self._thread.start()

    # --- the publisher's thread ---

    def _run(self) -> None:
        publishing = self._publishing
        while not self._stop.is_set():
            if not publishing.has_work:
                with suppress(Empty):
                    self._called.get(timeout=min(_LOOK_SECONDS, publishing.seconds_until_call))
            with self._turn:
                self._is_driven = self._is_served = True
                self._serve()
                self._is_driven = self._is_served = False
        with self._turn:
            publishing.lose(CLOSED)
            publishing.close_lost()
            publishing.refuse_all()

    def _serve(self) -> None:
        """Keep the turn as long as something is left to do; look at the connection at least once."""
        publishing = self._publishing
        while not self._stop.is_set():
            has_work = publishing.has_work
            try:
                publishing.close_lost()
                if publishing.wire is not None:
                    seconds = publishing.seconds_until_call if has_work else 0.0
                    publishing.round(seconds, wait=self._wait)
                else:
                    publishing.calls.run_due()
                    publishing.connect()
            except Exception as error:
                self._give_up(error)
            if not has_work:
                return

    def _wait(self, wire: Wire, seconds: float) -> Seen:
        """Wait for an answer without the turn: senders write meanwhile, each its own job, and wake nobody."""
        self._is_driven = False
        self._turn.release()
        try:
            return wire.wait(seconds)
        finally:
            self._turn.acquire()
            self._is_driven = True


def _refuse_nested(tickets: Sequence[Ticket]) -> None:
    """End what a signal's handler sends while it holds up a send of the same thread, which has the turn."""
    for ticket in tickets:
        if ticket.claim():
            ticket.end(Result.REFUSED, "sent by a signal's handler in the middle of another send")


def _reset_in_child(reference: weakref.ref[Publisher]) -> None:
    publisher = reference()
    if publisher is not None:
        publisher._reset()
