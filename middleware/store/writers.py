"""Whose turn is it to write? SQLite allows one writer; threads and coroutines take turns in order of arrival.

SQLite's own waiting is polling with pauses: under load the same connection may lose every time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future


class WriterQueue:
    """A lock that is granted first come, first served, to threads and coroutines alike."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._taken = False
        self._waiting: deque[Future[None]] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def acquire(self, timeout_seconds: float) -> bool:
        """Wait for the turn in this thread; False if it did not come in time."""
        ticket = self._ticket()
        if ticket is None:
            return True
        try:
            ticket.result(timeout_seconds)
        except TimeoutError:
            return self._give_up(ticket)
        except BaseException:
            self._abandon(ticket)
            raise
        return True

    async def acquire_async(self, timeout_seconds: float) -> bool:
        """Wait for the turn in this coroutine; False if it did not come in time."""
        ticket = self._ticket()
        if ticket is None:
            return True
        waiter = asyncio.wrap_future(ticket)
        try:
            await asyncio.wait({waiter}, timeout=timeout_seconds)
        except BaseException:
            self._abandon(ticket)
            raise
        return True if ticket.done() and not ticket.cancelled() else self._give_up(ticket)

    def release(self) -> None:
        """Pass the turn on to whoever waits longest."""
        with self._mutex:
            while self._waiting:
                ticket = self._waiting.popleft()
                if ticket.set_running_or_notify_cancel():  # False: cancelled when its event loop ended
                    ticket.set_result(None)
                    return
            self._taken = False

    def _ticket(self) -> Future[None] | None:
        """Return a place in the queue, or None if the turn is here at once."""
        with self._mutex:
            if not self._taken:
                self._taken = True
                return None
            ticket: Future[None] = Future()
            self._waiting.append(ticket)
            return ticket

    def _give_up(self, ticket: Future[None]) -> bool:
        """Leave the queue; True if the turn came in the last moment."""
        with self._mutex:
            if ticket.done() and not ticket.cancelled():
                return True
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        ticket.cancel()
        return False

    def _abandon(self, ticket: Future[None]) -> None:
        """Leave the queue and pass the turn on if it came in the last moment."""
        if self._give_up(ticket):
            self.release()
