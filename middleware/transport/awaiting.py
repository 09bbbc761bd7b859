"""How does a coroutine wait for the confirm without holding up its event loop?

Whoever has the publisher's turn does the waiting, as for a `send()`, and wakes the loop when the last ticket
has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from dramatiq import Message

from .publication import Publication, Ticket
from .sending import Outbound, Progress, give_up, raise_unless_confirmed


class _Countdown(Progress):
    """Lets one coroutine wait until a number of tickets ended."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()

    def all_ended(self) -> None:
        """Wake the coroutine, from whatever thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def wait(self, patience: float) -> bool:
        """Return whether all ended; gives up when none did for `patience` seconds."""
        while seconds := self.seconds_left(patience):
            done, _ = await asyncio.wait({self._ended}, timeout=seconds)
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
