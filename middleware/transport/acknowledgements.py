"""How do settled deliveries get back to the channel that delivered them?

Worker threads and whoever has the publisher's turn settle; the consumer's thread sends. Acknowledgements are
sent in as few frames as possible: one covers all tags below the first delivery that is still open.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from pika.channel import Channel

_ACK: Final = 0
_REQUEUE: Final = 1
_REJECT: Final = 2


class ChannelLink:
    """The open deliveries of one channel and the settled ones on their way to it.

    Dead from the moment the channel is known to be gone: whatever is said through it then is dropped,
    because the broker has put its deliveries back and a new channel counts its tags from 1 again.

    Parameters:
        nudge: told how many settled deliveries wait here, after each.
    """

    __slots__ = ("_nudge", "_open", "_settled", "alive")

    def __init__(self, nudge: Callable[[int], None]) -> None:
        self.alive = True
        self._nudge = nudge
        self._open: OrderedDict[int, None] = OrderedDict()
        self._settled: deque[tuple[int, int]] = deque()

    # --- any thread ---

    def ack(self, tag: int) -> None:
        """Remove a delivery from its queue."""
        self._settle(_ACK, tag)

    def requeue(self, tag: int) -> None:
        """Give a delivery back to its queue."""
        self._settle(_REQUEUE, tag)

    def reject(self, tag: int) -> None:
        """Let the broker dead-letter a delivery."""
        self._settle(_REJECT, tag)

    def _settle(self, what: int, tag: int) -> None:
        if self.alive:
            self._settled.append((what, tag))
            self._nudge(len(self._settled))

    # --- the consumer's thread ---

    @property
    def settled(self) -> int:
        """How many settled deliveries wait to be sent."""
        return len(self._settled)

    def delivered(self, tag: int) -> None:
        """Note that the broker delivered under this tag."""
        self._open[tag] = None

    def send(self, channel: Channel) -> None:
        """Send everything settled so far; the broker would close the channel over a tag that is not open."""
        settled, still_open, acked = self._settled, self._open, []
        while settled:
            what, tag = settled.popleft()
            if tag not in still_open:
                continue
            del still_open[tag]
            if what == _ACK:
                acked.append(tag)
            else:
                channel.basic_nack(tag, requeue=what == _REQUEUE)
        if not acked:
            return
        first_open = next(iter(still_open), None)
        below = [tag for tag in acked if first_open is None or tag < first_open]
        if below:
            channel.basic_ack(max(below), multiple=len(below) > 1)
        for tag in acked:
            if first_open is not None and tag > first_open:
                channel.basic_ack(tag)
