"""How is a job enqueued in a transaction, so that it is sent if that commits, and never if it does not?

The job is written as a row of the transaction. After the commit it is published by a thread of this process,
or, if this process is gone, by a relay; see `after_commit` and `relay`.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from dramatiq import Message
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session, SessionTransaction

from ...errors import EnqueueError, EnqueueUnknown, NotEnqueued, OutboxFull
from ...logs import get_logger
from ...store import Store
from ...transport.enqueueing import EnqueueingBroker
from ...transport.publication import Publication
from ...transport.submission import Submission
from .after_commit import AfterCommit
from .backlog import Backlog
from .elsewhere import check_database
from .owner import new_owner
from .row import OutboxRow
from .submitting import Submitting

log = get_logger(__name__)

LIMIT: Final = 100_000
_TURN: Final = timedelta(seconds=5)
"""How long a job with a `job_id` waits for its turn to be written, on SQLite."""
_LAST_SECONDS: Final = 2.0
"""How long a process that ends waits for what it has committed to be published."""


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
        self._take_room(broker, len(publications))
        rows = [OutboxRow(publication, delay_ms, self._owner) for publication in publications]
        session.add_all(rows)
        self._publish_with(session, [row.id for row in rows])

    def take(
        self,
        session: Session,
        broker: EnqueueingBroker,
        messages: Sequence[Message[Any]],
        publications: Sequence[Publication],
        delay_ms: int | None,
    ) -> list[Message[Any]]:
        """Add jobs to a session, or write them at once if one has a `job_id`; see `add` and `submit_in`."""
        if any("job_id" in message.options for message in messages):
            return self.submit_in(session, broker, messages, publications, delay_ms)
        self.add(session, broker, publications, delay_ms)
        return list(messages)

    def submit_in(
        self,
        session: Session,
        broker: EnqueueingBroker,
        messages: Sequence[Message[Any]],
        publications: Sequence[Publication],
        delay_ms: int | None,
    ) -> list[Message[Any]]:
        """Write jobs of which some have a `job_id` in a session's transaction, at once.

        Returns:
            For each the message that carries it: that of the first submission, if it was submitted before.

        Raises:
            OutboxFull: too many rows wait.
            NotEnqueued: a `job_id` cannot be taken.
        """
        self._take_room(broker, len(publications))
        submitting = Submitting(broker, self._owner, delay_ms)
        taken = submitting.in_session(session, messages, publications)
        self._publish_with(session, submitting.written)
        return taken

    def submit(
        self,
        broker: EnqueueingBroker,
        messages: Sequence[Message[Any]],
        publications: Sequence[Publication],
        delay_ms: int | None,
    ) -> list[Message[Any]]:
        """Do the same in a transaction of its own: the jobs are committed when it returns."""
        thread = self._take_room(broker, len(publications))
        submitting = Submitting(broker, self._owner, delay_ms)
        try:
            with self._store.writing(_TURN) as connection:
                taken = submitting.on(connection, messages, publications)
        except TimeoutError as error:
            raise NotEnqueued(str(error)) from error
        except SQLAlchemyError as error:
            raise _not_taken(error, messages) from error
        thread.committed(submitting.written)
        return taken

    def free(self, broker: EnqueueingBroker, submission: Submission, message_id: str) -> None:
        """Free a `job_id`, soon; from any thread, never blocks."""
        self._thread(broker).free(submission, message_id)

    def check(self, session: Session) -> None:
        """Check that a session is of the outbox's database; see `check_database`."""
        if self not in session.info:
            check_database(session, self._store)

    def _take_room(self, broker: EnqueueingBroker, number: int) -> AfterCommit:
        thread = self._thread(broker)
        try:
            self._backlog.add(number)
        except OutboxFull:
            thread.count()
            raise
        return thread

    def _publish_with(self, session: Session, ids: list[UUID]) -> None:
        """Have rows published after a session's commit."""
        if self not in session.info:
            session.info[self] = []
            event.listen(session, "after_commit", self._committed)
            event.listen(session, "after_transaction_end", self._ended)
        session.info[self] += ids

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
        atexit.unregister(self._end)
        if thread is not None and self._pid == os.getpid():
            thread.stop()

    def _end(self) -> None:
        """Publish what a program committed last: its thread does not outlive the program."""
        thread = self._after_commit
        if thread is None or self._pid != os.getpid() or thread.settle(_LAST_SECONDS):
            return
        log.warning("outbox.left", advice="run `jobsctl maintenance`: what was committed waits for it")

    def _thread(self, broker: EnqueueingBroker) -> AfterCommit:
        if self._after_commit is None or self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():  # forked: the thread is the parent's
                    self._forget()
                if self._after_commit is None:
                    thread = AfterCommit(self._store, broker, self._owner, self._backlog)
                    thread.start()
                    self._after_commit = thread
                    if not broker.is_inline:  # which stops this when the program ends
                        atexit.register(self._end)
        return self._after_commit


def _not_taken(error: SQLAlchemyError, messages: Sequence[Message[Any]]) -> EnqueueError:
    reason = str(error).splitlines()[0]
    if isinstance(error, DBAPIError) and error.connection_invalidated:  # perhaps during the COMMIT
        return EnqueueUnknown(
            f"jobs with a job_id: may be stored or not; the connection to the database was lost ({reason}); "
            "send again: in mode drop, one that is stored is found by its id",
            unknown=messages,
        )
    return NotEnqueued(
        f"expected the database to take jobs with a job_id, got: {reason}; they are committed there before "
        "they are published: send again when it answers"
    )
