"""When are settled deliveries sent to the broker? At once when it is quiet, several in one frame under load.

One frame that settles twelve deliveries costs client and broker little more than one that settles one. What
waits here is decided and, if it leads away from the worker, stored: should the process die meanwhile, the
broker delivers the job again, as it does when the process dies a moment earlier.
"""

from __future__ import annotations

from typing import Final

IDLE: Final = float("inf")
GATHER_SECONDS: Final = 0.005
"""Longer means fewer frames, and more jobs that have ended and come again after a crash."""
_SHARE: Final = 4
"""Of the prefetch: three quarters are left for the threads while the broker sends the next ones."""


class Gathering:
    """Decides for the consumer's thread, the only one that calls it.

    Parameters:
        prefetch: of the queue. A fourth of it is enough to be sent at once, so that no thread is left without
            work; below eight, each delivery is.
    """

    def __init__(self, prefetch: int) -> None:
        self.enough = max(1, prefetch // _SHARE)
        self._sent_at = -IDLE

    def seconds_left(self, settled: int, now: float) -> float:
        """Return how long what is settled may wait for more.

        Parameters:
            settled: how many deliveries wait to be sent.
            now: on a monotonic clock, in seconds.
        """
        if not settled:
            return IDLE
        if settled >= self.enough:
            return 0.0
        return max(0.0, self._sent_at + GATHER_SECONDS - now)

    def sent(self, now: float) -> None:
        """Note that everything settled was sent."""
        self._sent_at = now
