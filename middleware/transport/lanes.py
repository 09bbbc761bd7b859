"""Which lane does a ticket take, and what of all lanes still waits?"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from .lane import Lane, kind_of
from .publication import Result, Ticket

_LARGE: Final = 16 * 1024
"""Bodies above this go alone: if the broker refuses one, nothing else is in flight beside it."""
_DROP_SECONDS: Final = 1.0


class Lanes:
    """What is to be written on a publisher's connection: taken in by any thread, sorted by one."""

    def __init__(self) -> None:
        self._inbox: deque[Ticket] = deque()
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._largest = _LARGE
        self._next_drop = 0.0

    # --- any thread ---

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Take tickets in."""
        self._inbox.extend(tickets)

    @property
    def has_new(self) -> bool:
        """Whether a ticket came in that `sort` has not seen."""
        return bool(self._inbox)

    @property
    def has_work(self) -> bool:
        """Whether something waits to be written or answered."""
        return bool(self._inbox) or any(lane.waiting or lane.in_flight for lane in list(self._lanes.values()))

    def of(self, ticket: Ticket) -> Lane | None:
        """Return a ticket's lane, if there has been one for it."""
        return self._lanes.get(self._key(ticket))

    # --- the thread that has the turn ---

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def sort(self) -> None:
        """Put what came in, and what is to be written again, into its lane; drop what nobody waits for."""
        while self._inbox:
            ticket = self._inbox.popleft()
            key = self._key(ticket)
            lane = self._lanes.get(key)
            if lane is None:
                lane = self._lanes[key] = Lane(*key)
            lane.waiting.append(ticket)
        self._drop_abandoned()

    def have_waiting(self) -> bool:
        """Whether something is to be written, of what has been sorted."""
        return any(lane.waiting for lane in self._lanes.values())

    def limit(self, largest: int) -> None:
        """Have bodies above so many bytes go alone from now on: the broker has refused a larger one."""
        self._largest = min(self._largest, largest)

    def lose(self, reason: str) -> None:
        """The connection went: what was in flight may be stored or not, what waits goes on waiting."""
        for lane in self._lanes.values():
            lane.lose(reason)

    def refuse_all(self, reason: str) -> None:
        """End what was not written: nobody will."""
        self.sort()
        for lane in self._lanes.values():
            while lane.waiting:
                ticket = lane.waiting.popleft()
                if ticket.claim():
                    ticket.end(Result.REFUSED, reason)

    def _drop_abandoned(self) -> None:
        now = time.monotonic()
        if now >= self._next_drop:
            self._next_drop = now + _DROP_SECONDS
            for lane in self._lanes.values():
                lane.drop_abandoned()

    def _key(self, ticket: Ticket) -> tuple[str, str]:
        return ticket.publication.queue, kind_of(ticket.publication, self._largest)
