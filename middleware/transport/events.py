"""How does a thread wait for a connection without touching it, and handle later what it saw?

pika's loop waits and handles in one step. Apart, one thread can wait while others write on the connection.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pika.adapters.select_connection import IOLoop

Seen: TypeAlias = Sequence[tuple[int, int]]
"""File descriptors, each with what it is ready for."""

_LONGEST_SECONDS: Final = 5.0


class Events:
    """The events of a loop.

    Parameters:
        ioloop: pika's.

    Attributes:
        are_apart: waiting and handling are two steps: the system has epoll, which pika uses there.
    """

    def __init__(self, ioloop: IOLoop) -> None:
        self._ioloop = ioloop
        self._poller = ioloop._poller
        found: Any = getattr(self._poller, "_poll", None)
        self.are_apart = hasattr(select, "epoll") and isinstance(found, select.epoll)
        self._epoll = found

    def wait(self, seconds: float | None) -> Seen:
        """Wait until something has to be handled, and return what; safe from any thread, one at a time.

        Parameters:
            seconds: at most; None waits for the next timer.
        """
        longest = _LONGEST_SECONDS if seconds is None else seconds
        remaining = self._ioloop._get_remaining_interval()
        if remaining is not None and remaining < longest:
            longest = remaining
        return self._epoll.poll(longest)  # type: ignore[no-any-return]  # a select.epoll

    def handle(self, seen: Seen) -> None:
        """Read, write and run the callbacks and timers that are due."""
        if seen:
            self._poller._dispatch_fd_events(dict(seen))
        self._ioloop.process_timeouts()

    def wait_and_handle(self, seconds: float | None) -> None:
        """Do both, on any system."""
        if self.are_apart:
            self.handle(self.wait(seconds))
            return
        timer = self._ioloop.call_later(seconds, _nothing) if seconds is not None else None
        self._ioloop.poll()
        self._ioloop.process_timeouts()
        if timer is not None:
            self._ioloop.remove_timeout(timer)


def _nothing() -> None:
    """A callback whose only purpose is that it was called."""
