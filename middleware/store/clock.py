"""What time is it? By the database's clock, which all processes share: their own may differ by seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class Clock(FunctionElement[datetime]):
    """The time when the statement runs, not when its transaction began; in SQL only.

    Parameters:
        seconds: later than now, or earlier if below zero. Defaults to 0.
    """

    type = DateTime(timezone=True)
    name = "clock"
    inherit_cache = True

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(literal(float(seconds)))


def in_utc(moment: datetime) -> datetime:
    """Return a moment that a database gave, with its zone: SQLite stores UTC and does not say so.

    >>> in_utc(datetime(2026, 1, 1, 12))
    datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.timezone.utc)
    """
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@compiles(Clock, "postgresql")
def _postgresql(element: Clock, compiler: Any, **options: Any) -> str:
    return f"(clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **options)}))"


@compiles(Clock, "sqlite")
def _sqlite(element: Clock, compiler: Any, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    # SQLite knows milliseconds; SQLAlchemy writes and compares text with six digits.
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', {seconds} || ' seconds') || '000')"
