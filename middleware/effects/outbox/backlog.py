"""Does the outbox take more rows? An outbox that nobody empties must not fill the database's disk.

The rows are counted by the thread that publishes, about once a second while rows are written, and never by
who enqueues: an enqueue costs a comparison. Processes that write at the same time may pass the limit by as
much as they write in that second.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from sqlalchemy import Connection

from ...errors import OutboxFull
from . import rows

_COUNT_SECONDS: Final = 1.0


class Backlog:
    """How many rows wait, as far as this process knows.

    Parameters:
        limit: rows at most.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._known = 0
        self._counted_at = -_COUNT_SECONDS

    def add(self, number: int) -> None:
        """Take note of rows that are about to be written.

        Raises:
            OutboxFull: there are too many.
        """
        with self._lock:
            if self._known + number > self._limit:
                raise OutboxFull(
                    f"expected at most JOBS_OUTBOX_LIMIT ({self._limit}) jobs to wait in the outbox, got: "
                    f"{self._known} and {number} more; see that the broker is up and that `jobsctl "
                    "maintenance` runs, then enqueue again, or raise the setting"
                )
            self._known += number

    def leave(self, number: int) -> None:
        """Take note of rows that were published, or never committed."""
        with self._lock:
            self._known = max(0, self._known - number)

    def seconds_left(self) -> float:
        """Return how long the last count is good enough."""
        return max(0.0, self._counted_at + _COUNT_SECONDS - time.monotonic())

    def count(self, connection: Connection) -> None:
        """Count the rows."""
        number = rows.count(connection, self._limit)
        with self._lock:
            self._known = number
            self._counted_at = time.monotonic()
