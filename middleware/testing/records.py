"""What does the kit itself read and write in the database under test, on connections of its own?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.orm import Session

from ..effects.intents import HELD
from ..store import Clock, Store, job_intents, job_ledger, job_outbox

_PAST_SECONDS: Final = -1.0


class Records:
    """The ledger's rows of one job, and the team's own.

    Parameters:
        store: of the application; None if its broker has no ledger, and then nothing is done.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = None
        if store is not None:
            self._store = Store(store.url.render_as_string(hide_password=False), pool_size=2)

    @property
    def can_end_transactions(self) -> bool:
        """Whether the database ends the transaction of a worker that is frozen for too long."""
        return self._store is not None and not self._store.is_sqlite

    def forget(self, key: str | None) -> None:
        """Make a key one that was never spent."""
        if self._store is None or key is None:
            return
        with self._store.engine.begin() as connection:
            connection.execute(delete(job_ledger).where(job_ledger.c.key == key))
            connection.execute(delete(job_intents).where(job_intents.c.key == key))

    def expire(self, key: str | None) -> None:
        """Let the leases of a key's attempts run out."""
        if self._store is None or key is None:
            return
        held = update(job_intents).where(job_intents.c.key == key, job_intents.c.state == HELD)
        with self._store.engine.begin() as connection:
            connection.execute(held.values(lease_until=Clock(_PAST_SECONDS)))

    def has_asked(self, key: str | None) -> bool:
        """Whether an attempt at a key's effect has come to its call."""
        if self._store is None or key is None:
            return False
        asked = select(func.count()).where(job_intents.c.key == key, job_intents.c.asked_at.is_not(None))
        with self._store.engine.connect() as connection:
            return bool(connection.scalar(asked))

    def terminate(self, backend: int) -> None:
        """End a frozen worker's transaction, as PostgreSQL does after the time limit and the grace."""
        assert self._store is not None
        with self._store.engine.connect() as connection:
            connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})

    @property
    def is_outbox_empty(self) -> bool:
        """Whether the broker has all that was committed to the outbox."""
        if self._store is None:
            return True
        with self._store.engine.connect() as connection:
            return connection.scalar(select(job_outbox.c.id).limit(1)) is None

    def ask(self, question: Callable[[Session], Any]) -> Any:
        """Call a team's function with a session, whose transaction is committed."""
        if self._store is None:
            return question(Session())
        with Session(self._store.engine) as session, session.begin():
            return question(session)

    def close(self) -> None:
        """Close the connections."""
        if self._store is not None:
            self._store.dispose()
