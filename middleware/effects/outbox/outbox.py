"""How is a job enqueued in a transaction, so that it is sent if that commits, and never if it does not?

The job is written as a row of the transaction. After the commit it is published by a thread of this process,
or, if this process is gone, by a relay; see `after_commit` and `relay`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from ...logs import get_logger
from ...store import Store
from ...transport.enqueueing import EnqueueingBroker
from ...transport.publication import Publication
from .after_commit import AfterCommit
from .backlog import Backlog
from .owner import new_owner
from .row import OutboxRow

log = get_logger(__name__)

LIMIT: Final = 100_000


class Outbox:
    """The outbox of one database and one broker.

    Parameters:
        store: the database; the sessions that jobs are enqueued in are of the same one.
        limit: rows that may wait. Defaults to 100,000.
    """

    def __init__(self, store: Store, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"expected limit to be at least 1, got: {limit!r}")
        self._store = store
        self._limit = limit
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._owner = new_owner("outbox")
        self._backlog = Backlog(self._limit)
        self._after_commit: AfterCommit | None = None

    def add(
        self,
        session: Session,
        broker: EnqueueingBroker,
        publications: Sequence[Publication],
        delay_ms: int | None,
    ) -> None:
        """Add jobs to a session; they are written with its next flush, at the latest by its commit.

        Parameters:
            session: of the caller's transaction.
            broker: publishes them after the commit.
            publications: the jobs.
            delay_ms: milliseconds until they are due, counted from now; None or 0 means now.

        Raises:
            OutboxFull: too many rows wait.
        """
        thread = self._thread(broker)
        try:
            self._backlog.add(len(publications))
        except Exception:
            thread.count()
            raise
        rows = [OutboxRow(publication, delay_ms, self._owner) for publication in publications]
        session.add_all(rows)
        if self not in session.info:
            session.info[self] = []
            event.listen(session, "after_commit", self._committed)
            event.listen(session, "after_transaction_end", self._ended)
        session.info[self] += [row.id for row in rows]

    def _committed(self, session: Session) -> None:
        """Pass the ids on; in the middle of somebody's commit, so it neither blocks nor raises."""
        try:
            if session.in_nested_transaction():
                return
            ids: list[UUID] = session.info[self]
            session.info[self] = []
            if ids and self._after_commit is not None:
                self._after_commit.committed(ids)
        except Exception:  # the relay finds them
            log.warning("outbox.hook_failed", exc_info=True)

    def _ended(self, session: Session, transaction: SessionTransaction) -> None:
        """Forget what a transaction did not commit."""
        if transaction.parent is None and session.info.get(self):
            self._backlog.leave(len(session.info[self]))
            session.info[self] = []

    def stop(self) -> None:
        """End the thread; the next job starts another."""
        with self._lock:
            thread, self._after_commit = self._after_commit, None
        if thread is not None and self._pid == os.getpid():
            thread.stop()

    def _thread(self, broker: EnqueueingBroker) -> AfterCommit:
        if self._after_commit is None or self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():  # forked: the thread is the parent's
                    self._forget()
                if self._after_commit is None:
                    thread = AfterCommit(self._store, broker, self._owner, self._backlog)
                    thread.start()
                    self._after_commit = thread
        return self._after_commit
