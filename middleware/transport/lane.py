"""Which publishes wait for which channel? One lane a queue and kind, so that no queue holds up another.

A queue without a leader answers nothing: what is in flight to it fills its own lanes only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from .confirms import ConfirmChannel
from .publication import READY, Publication, Ticket
from .wire import WireError

_MOST_IN_FLIGHT: Final = 2000
"""Unanswered publishes of one lane at most: what a lost connection can leave unknown."""
_BURST: Final = 100
"""Publishes written in one go: the broker begins with them, and its confirms are read, before the next."""

READY_KIND: Final = "ready"
ROUTED_KIND: Final = "routed"
ALONE_KIND: Final = "alone"


def kind_of(publication: Publication, largest: int) -> str:
    """Return which of its queue's lanes a publication takes.

    Parameters:
        publication: to be written.
        largest: bytes of body above which the broker may refuse it, so that nothing should fly beside it.
    """
    if publication.alone or len(publication.body) > largest:
        return ALONE_KIND
    # The default exchange always exists; a named one that is gone closes its channel.
    return READY_KIND if publication.place == READY else ROUTED_KIND


class Lane:
    """The publishes that share a channel: waiting, then in flight.

    Parameters:
        queue: whose publishes they are.
        kind: ready, routed or alone.
    """

    def __init__(self, queue: str, kind: str) -> None:
        self.queue = queue
        self.waiting: deque[Ticket] = deque()
        self._channel: ConfirmChannel | None = None
        self._limit = 1 if kind == ALONE_KIND else _MOST_IN_FLIGHT

    @property
    def can_write(self) -> bool:
        """Whether something waits and there is room for it in flight."""
        if not self.waiting:
            return False
        channel = self._channel
        return channel is None or (len(channel.in_flight) < self._limit and not channel.is_refusing)

    @property
    def is_open(self) -> bool:
        """Whether its channel stands."""
        return self._channel is not None and self._channel.is_open

    @property
    def in_flight(self) -> int:
        """How many publishes the broker has not answered."""
        return len(self._channel.in_flight) if self._channel is not None else 0

    def write(self, prepare: Callable[[Ticket], bool], open_channel: Callable[[], ConfirmChannel]) -> None:
        """Write what waits, as far as there is room.

        Parameters:
            prepare: claims a ticket and does what its queue needs; False leaves it out.
            open_channel: opens a channel in confirm mode.

        Raises:
            WireError: the connection went; what was not written still waits.
        """
        for _ in range(min(_BURST, len(self.waiting))):
            if not self.can_write:
                return
            ticket = self.waiting.popleft()
            try:
                self._open(open_channel)  # first, for the ticket's sender may give up meanwhile
                if prepare(ticket):
                    self._open(open_channel).publish(ticket)
            except WireError:
                ticket.release()
                self.waiting.appendleft(ticket)
                raise

    def _open(self, open_channel: Callable[[], ConfirmChannel]) -> ConfirmChannel:
        if self._channel is None or not self._channel.is_open:
            self._channel = open_channel()
        return self._channel

    def drop_abandoned(self) -> None:
        """Forget tickets whose senders gave up, so that they do not pile up behind a silent broker."""
        if any(ticket.is_abandoned for ticket in self.waiting):
            self.waiting = deque(ticket for ticket in self.waiting if not ticket.is_abandoned)

    def lose(self, reason: str) -> None:
        """The connection went: what was in flight may be stored or not, what waits goes on waiting."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.lose(reason)
