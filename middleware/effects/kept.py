"""Which keys are not forgotten, however old they are? Those that somebody still has to settle."""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists

from ..store import job_intents
from .intents import HELD, UNKNOWN


def is_kept(key: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition under which no row of a key is pruned.

    Parameters:
        key: the column of the row that asks.
    """
    attempt = job_intents.alias("unsettled")
    return exists().where(attempt.c.key == key, attempt.c.state.in_((HELD, UNKNOWN)))
