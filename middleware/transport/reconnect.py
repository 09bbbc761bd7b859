"""When is a lost connection tried again, and what does the log say of it?

One line per change of state: lost, cannot connect (once), connected again.
"""

from __future__ import annotations

import random
from typing import Final

from ..logs import get_logger

log = get_logger(__name__)

_FIRST_SECONDS: Final = 0.1
_LONGEST_SECONDS: Final = 5.0


class Reconnect:
    """The state of one connection's reconnecting: exponential backoff with full jitter.

    Parameters:
        who: the connection's name in the log.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._failures = 0
        self.problem = ""

    def pause(self) -> float:
        """Return how many seconds to wait before the next attempt; none before the first."""
        if not self._failures:
            return 0.0
        ceiling = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(self._failures, 16))
        return random.uniform(_FIRST_SECONDS, ceiling)

    def failed(self, reason: str) -> None:
        """Note that an attempt failed."""
        if reason != self.problem and not (self._failures and self.problem):
            log.error("connection.failed", connection=self._who, reason=reason)
        self._failures += 1
        self.problem = reason

    def lost(self, reason: str) -> None:
        """Note that an established connection went."""
        log.warning("connection.lost", connection=self._who, reason=reason)
        self._failures = max(1, self._failures)
        self.problem = ""

    def succeeded(self, address: str) -> None:
        """Note that the connection stands."""
        if self._failures:
            log.info("connection.established", connection=self._who, address=address)
        self._failures = 0
        self.problem = ""
