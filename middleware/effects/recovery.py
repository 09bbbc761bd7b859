"""The connection was lost during COMMIT: is the effect there or not?"""

from __future__ import annotations

from sqlalchemy import select

from ..store import Store, job_ledger
from .entry import Entry


def spent_by(store: Store, entry: Entry) -> str | None:
    """Look a key up on a fresh connection.

    Returns:
        The id of the message that spent it; None if it is free: nothing was committed.

    Raises:
        sqlalchemy.exc.DBAPIError: the database does not answer.
    """
    query = select(job_ledger.c.message_id).where(job_ledger.c.key == entry.key)
    with store.fresh_engine.connect() as connection:
        found: str | None = connection.execute(query).scalar()
    return found
