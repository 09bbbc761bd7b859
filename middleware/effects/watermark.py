"""May a job run that has no row in the ledger, although old rows are pruned? Not if it may have had one.

Rows of jobs that were enqueued before the watermark may be gone: such a job without a row has been done or
not, and nobody can say. A job that is younger than what can be pruned has no row because it was not done.

The watermark is raised before anything is deleted, so whoever has found no row in a transaction, and looks
at the watermark after that in the same one, sees the watermark that covers the row's deletion. Young jobs
need not look: the pruner waits for longer than a reading counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, func, select

from ..durations import format_duration
from ..errors import Unprovable
from ..store import Clock, in_utc, job_watermark

READING_AGE: Final = timedelta(seconds=60)
"""How long a process goes by what it has read; the pruner waits longer."""
MOST_AHEAD: Final = timedelta(hours=1)
"""How far a sender's clock may be ahead of the database's: rows are kept for so much longer."""
YOUNG: Final = timedelta(days=1)
"""A job enqueued longer ago than this looks for itself, however fresh the reading."""

_CLOCK: Final = getattr(
    time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC
)  # the one that a suspended machine's has
_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = 253_402_300_799_000  # the year 9999: what Python can write


@dataclass(frozen=True, slots=True)
class Reading:
    """What the database said.

    Attributes:
        watermark_ms: milliseconds since 1970; 0 if nothing was ever pruned.
        at_ms: the database's clock.
        taken: this process's, in seconds, before it asked.
    """

    watermark_ms: int
    at_ms: int
    taken: float

    @property
    def latest_ms(self) -> int:
        """The latest moment that a job can say it was enqueued at."""
        return self.at_ms + MOST_AHEAD // _MS

    def is_enough_for(self, enqueued_ms: int, now: float) -> bool:
        """Whether a job may run on this reading's word, without looking again."""
        youngest = max(self.watermark_ms, self.at_ms - YOUNG // _MS)
        return now - self.taken <= READING_AGE.total_seconds() and youngest <= enqueued_ms <= self.latest_ms


class Watermark:
    """What one process knows about the watermark.

    Parameters:
        seconds: the process's clock; it goes on while the machine is suspended. For tests.
    """

    def __init__(self, seconds: Callable[[], float] = lambda: time.clock_gettime(_CLOCK)) -> None:
        self._seconds = seconds
        self._reading: Reading | None = None

    def check(self, connect: Callable[[], Connection], key: str, enqueued_ms: int) -> None:
        """Refuse a job that may have been done; called after no row was found, or its own was inserted.

        Parameters:
            connect: returns the connection that found none, in the same transaction; called if it is needed.
            key: the job's.
            enqueued_ms: when it was first enqueued, milliseconds since 1970, as its message says.

        Raises:
            Unprovable: it was enqueued before the watermark, or says so of a moment in the future.
        """
        reading = self._reading
        if reading is not None and reading.is_enough_for(enqueued_ms, self._seconds()):
            return
        self._reading = reading = self._read(connect())
        if enqueued_ms < reading.watermark_ms:
            raise Unprovable(
                f"expected a job to be younger than what the ledger has forgotten (first enqueued after "
                f"{in_words(reading.watermark_ms)}), got: {in_words(enqueued_ms)}, and no row with the key "
                f"{key!r}; see by hand whether it took effect, and send it anew if it did not"
            )
        if enqueued_ms > reading.latest_ms:
            raise Unprovable(
                f"expected message_timestamp to be the milliseconds since 1970 at which the job was first "
                f"enqueued, at most {format_duration(MOST_AHEAD)} ahead of the database's clock "
                f"({in_words(reading.at_ms)}), got: {in_words(enqueued_ms)}, key {key!r}; set the sender's "
                "clock right and send the job anew"
            )

    def _read(self, connection: Connection) -> Reading:
        taken = self._seconds()
        watermark = select(func.max(job_watermark.c.watermark)).scalar_subquery()
        raised, at = connection.execute(select(watermark, Clock())).one()
        return Reading(0 if raised is None else _ms(raised), _ms(at), taken)


def in_words(ms: int) -> str:
    """Return milliseconds since 1970 as people write them.

    >>> in_words(1_790_000_000_000), in_words(2**52)
    ('2026-09-21 14:13:20 UTC', '4503599627370496 ms after 1970')
    """
    if ms > _LATEST_MS:
        return f"{ms} ms after 1970"
    return f"{_EPOCH + ms * _MS:%Y-%m-%d %H:%M:%S} UTC"


def _ms(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded up: a job of the watermark's own millisecond may be older."""
    return math.ceil((in_utc(moment) - _EPOCH) / _MS)
