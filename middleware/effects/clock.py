"""What time is it in the database? Leases are measured on its clock, and on no worker's own.

Not the transaction's time, as `now()` is on PostgreSQL: a lease is compared with the moment of the statement.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Double, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import DateTime


class clock(FunctionElement[Any]):  # noqa: N801  # reads like a function of the database's, in a statement
    """The moment, `lead` from now."""

    type = DateTime(timezone=True)
    inherit_cache = True

    def __init__(self, lead: timedelta = timedelta(0)) -> None:
        super().__init__(literal(lead.total_seconds(), Double))


@compiles(clock, "postgresql")
def _postgresql(element: clock, compiler: Any, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    return f"(clock_timestamp() + make_interval(secs => {seconds}))"


@compiles(clock, "sqlite")
def _sqlite(element: clock, compiler: Any, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    # As SQLAlchemy writes it, with six digits; SQLite knows three of them.
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', {seconds} || ' seconds')"
