"""How does the kit talk AMQP?

A `Wire` is one connection that moves only while its owner calls `pump()`: the consumer's thread, whoever has
the publisher's turn, or a command that declares something and leaves. pika's own blocking adapter puts
two layers of queues between socket and caller; here a callback gets the frame as soon as it is read.
"""

from __future__ import annotations

import copy
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import pika
import pika.exceptions
from pika.adapters.select_connection import IOLoop
from pika.channel import Channel

from ..errors import JobsError
from .addresses import OPEN_SECONDS, describe_address
from .bundling import BundlingConnection
from .events import Events, Seen
from .headers import tolerate_timestamps
from .reading import Confirmed

_REFUSALS: Final = (
    pika.exceptions.AuthenticationError,
    pika.exceptions.ProbableAccessDeniedError,
    pika.exceptions.ProbableAuthenticationError,
)
_CLOSE_SECONDS: Final = 2.0


class WireError(JobsError):
    """The broker is not reachable, or the connection is gone."""


class WireRefused(WireError):
    """Every node answers and refuses: wrong user, password or virtual host. Waiting does not help."""


class ChannelClosed(JobsError):
    """The broker closed the channel.

    Attributes:
        code: AMQP reply code, 0 when the connection went instead.
        text: the broker's own words.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text


class Wire:
    """One connection, driven by the thread that calls `pump()`.

    Parameters:
        parameters: the nodes to try, each once, in random order.
        name: shown in RabbitMQ's list of connections.
        on_blocked: called with the reason when an alarm blocks publishing, with None when it ends.

    Raises:
        WireError: no node answered.
    """

    def __init__(
        self,
        parameters: Sequence[pika.connection.Parameters],
        name: str,
        on_blocked: Callable[[str | None], None] | None = None,
    ) -> None:
        _quieten_pika()
        tolerate_timestamps()
        self._failure: BaseException | None = None
        self._opened = threading.Event()
        problems: list[WireError] = []
        for shared in random.sample(list(parameters), len(parameters)):
            node = copy.copy(shared)
            node.client_properties = {"connection_name": name}
            try:
                self._connect(node)
            except WireError as error:
                problems.append(error)
                continue
            self.address = describe_address(node)
            if on_blocked is not None:
                self._report_alarms(on_blocked)
            return
        is_refused = all(isinstance(problem, WireRefused) for problem in problems)
        raise (WireRefused if is_refused else WireError)("; ".join(map(str, problems)))

    def _connect(self, node: pika.connection.Parameters) -> None:
        self._failure = None
        self.ioloop = IOLoop()
        self.ioloop.activate_poller()
        self._events = Events(self.ioloop)
        self._connection = BundlingConnection(
            node,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_closed,
            on_close_callback=self._on_closed,
            custom_ioloop=self.ioloop,
        )
        give_up = time.monotonic() + OPEN_SECONDS
        while not self._is_decided() and time.monotonic() < give_up:
            self.pump(0.5)
        if not self.is_open:
            reason = self.failure if self._is_decided() else "no answer in time"
            kind = WireRefused if self._is_refused() else WireError
            self.close()
            raise kind(f"cannot connect to RabbitMQ at {describe_address(node)}: {reason}")

    def _is_refused(self) -> bool:
        return isinstance(self._failure, _REFUSALS)

    def _is_decided(self) -> bool:
        return self.is_open or self._failure is not None

    def _on_open(self, _connection: object) -> None:
        self._opened.set()

    def _on_closed(self, _connection: object, reason: BaseException) -> None:
        self._opened.clear()
        self._failure = reason

    def _report_alarms(self, on_blocked: Callable[[str | None], None]) -> None:
        self._connection.add_on_connection_blocked_callback(
            lambda _connection, frame: on_blocked(frame.method.reason or "an alarm")
        )
        self._connection.add_on_connection_unblocked_callback(lambda _connection, _frame: on_blocked(None))

    @property
    def is_open(self) -> bool:
        """Whether the connection stands, as far as this side knows."""
        return self._opened.is_set()

    @property
    def failure(self) -> str:
        """Why the connection went."""
        return _explain(self._failure) if self._failure is not None else "closed"

    def pump(self, seconds: float | None = None) -> None:
        """Read, write and run callbacks once.

        Parameters:
            seconds: wait at most so long for something to happen; None waits for the next timer.
        """
        self._connection.flush()
        self._events.wait_and_handle(seconds)

    @property
    def can_wait(self) -> bool:
        """Whether one thread may `wait` while others write: not if the connection is encrypted."""
        return self._events.are_apart and self._connection.writes_at_once

    def wait(self, seconds: float) -> Seen:
        """Wait at most so long until something has to be handled; touches nothing."""
        return self._events.wait(seconds)

    def handle(self, seen: Seen) -> None:
        """Read, write and run callbacks, after `wait`."""
        self._events.handle(seen)

    def flush(self) -> bool:
        """Write what was said since the last call; False if the socket did not take all of it at once."""
        self._connection.flush()
        return not self._connection.has_unsent

    def write(self, frames: bytes) -> None:
        """Write whole frames of an open channel; they leave with the next `pump()`."""
        self._connection.write(frames)

    def on_confirms(self, channel: int, confirmed: Confirmed | None) -> None:
        """Give the acknowledgements of a channel to `confirmed`; None: give them to nobody any more."""
        self._connection.on_confirms(channel, confirmed)

    def wake(self) -> None:
        """Make a `pump()` that another thread is waiting in return; safe from any thread."""
        self.ioloop.add_callback_threadsafe(_nothing)

    def channel(self) -> Channel:
        """Open a channel.

        Raises:
            WireError: the connection is gone.
        """
        return self.call(lambda done: self._connection.channel(on_open_callback=done))  # type: ignore[no-any-return]

    def call(self, start: Callable[[Callable[[Any], None]], object], channel: Channel | None = None) -> Any:
        """Run one request and pump until its answer is there.

        Parameters:
            start: sends the request; is given the callback that takes the answer.
            channel: the channel it uses, whose closing ends the wait.

        Returns:
            What the callback was called with.

        Raises:
            ChannelClosed: the broker closed the channel instead.
            WireError: the connection went, or there was no answer in time.
        """
        answers: list[Any] = []
        closed: list[ChannelClosed] = []
        if channel is not None:
            channel.add_on_close_callback(lambda _channel, reason: closed.append(closed_channel(reason)))
        try:
            start(answers.append)
        except pika.exceptions.AMQPError as error:
            raise closed_channel(error) if channel is not None else WireError(_explain(error)) from error
        give_up = time.monotonic() + OPEN_SECONDS
        while not answers:
            if closed:
                raise closed[0]
            if not self.is_open:
                raise WireError(self.failure)
            if time.monotonic() > give_up:
                raise WireError(f"RabbitMQ did not answer within {OPEN_SECONDS:.0f} s")
            self.pump(0.5)
        return answers[0]

    def close(self) -> None:
        """Close the connection and release its file descriptors. Never raises."""
        try:
            if not (self._connection.is_closed or self._connection.is_closing):
                self._connection.close()
            self._pump_until_closed(_CLOSE_SECONDS)
            if not self._connection.is_closed:  # the broker does not answer: close the socket without it
                self._connection._adapter_disconnect_stream()
                self._pump_until_closed(_CLOSE_SECONDS)
        except Exception:
            pass  # whatever state it is in, it is given up
        finally:
            self._opened.clear()
            self.ioloop.close()

    def _pump_until_closed(self, seconds: float) -> None:
        give_up = time.monotonic() + seconds
        while not self._connection.is_closed and time.monotonic() < give_up:
            self.pump(0.2)


def _quieten_pika() -> None:
    """Leave the log to the kit, unless somebody wants pika's: six ERROR lines per failed attempt."""
    logger = logging.getLogger("pika")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)


def closed_channel(reason: BaseException) -> ChannelClosed:
    """Turn pika's reason for a closed channel into the kit's."""
    if isinstance(reason, pika.exceptions.ChannelClosed):
        return ChannelClosed(reason.reply_code, reason.reply_text)
    return ChannelClosed(0, _explain(reason))


def _nothing() -> None:
    """A callback whose only purpose is that it was called."""


def _explain(error: BaseException) -> str:
    """Return the innermost reason of a failed connection; pika nests them."""
    nested = getattr(error, "exceptions", None)
    if nested:
        return _explain(nested[-1])
    inner = getattr(error, "exception", None) or getattr(error, "error", None)
    if isinstance(inner, BaseException):
        return _explain(inner)
    if isinstance(error, pika.exceptions.ConnectionClosed):
        return f"{error.reply_code} {error.reply_text}"
    if error.args and isinstance(error.args[-1], BaseException):
        return _explain(error.args[-1])
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
