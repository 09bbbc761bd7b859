"""How does a coroutine wait for the confirm without holding up its event loop?

The publisher's thread does the waiting, as for a `send()`; when the last ticket has ended it wakes the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from dramatiq import Message

from .publication import Publication, Ticket
from .sending import Outbound, give_up, raise_unless_confirmed


class _Countdown:
    """Lets one coroutine wait until a number of tickets ended."""

    def __init__(self, count: int) -> None:
        self.left = count
        self._loop = asyncio.get_running_loop()
        self._all_ended = self._loop.create_future()

    def __call__(self, _ticket: Ticket) -> None:
        self.left -= 1  # only the publisher's thread counts
        if self.left == 0:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self._all_ended.done():
            self._all_ended.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Return whether all ended; gives up when none did for `seconds`."""
        before = -1
        while self.left != before:
            before = self.left
            done, _ = await asyncio.wait({self._all_ended}, timeout=seconds)
            if done:
                return True
        return False


async def send_and_await(
    outbound: Outbound,
    messages: Sequence[Message[Any]],
    publications: Sequence[Publication],
    timeout: timedelta,
) -> None:
    """Publish and await the confirms; see `sending.send` for parameters and errors.

    A coroutine that is cancelled leaves unpublished what is not written yet; what was written may be stored.
    """
    countdown = _Countdown(len(publications))
    tickets = [Ticket(publication, countdown) for publication in publications]
    outbound.submit(tickets)
    try:
        all_ended = await countdown.wait(timeout.total_seconds())
    except asyncio.CancelledError:
        give_up(tickets, timeout, "its sender was cancelled")
        raise
    if not all_ended:
        give_up(tickets, timeout, outbound.problem)
    raise_unless_confirmed(messages, tickets)
