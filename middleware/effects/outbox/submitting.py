"""How is a job with a `job_id` written? Its id is taken first; the job follows, unless another has the id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from dramatiq import Message
from sqlalchemy import Connection, insert, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ...errors import NotEnqueued
from ...store import Clock, job_outbox
from ...transport.enqueueing import EnqueueingBroker
from ...transport.publication import Publication
from ...transport.submission import DEBOUNCE, KEEP_LAST, REPLACE, Submission, misuse, submission_of
from .. import submissions
from ..submissions import Accepted
from .row import due_at, new_id

_WAIT_MS: Final = 5000
_MS: Final = timedelta(milliseconds=1)
_SECOND: Final = timedelta(seconds=1)
_DEBOUNCED: Final = "nobody: debounced until it is due"
_NOT_OURS: Final = {
    "55P03": f"somebody else submits it, for {_WAIT_MS // 1000} s by now",
    "40P01": "two transactions wait for each other's",
}
"""SQLSTATEs of a wait that ended without the lock, and what to say of it."""


class Submitting:
    """Writes jobs of one sender in one transaction.

    Parameters:
        broker: publishes them later.
        owner: claims what is to be published at once.
        delay_ms: milliseconds until they are due; None or 0 means now.

    Attributes:
        written: the rows to be published after the commit.
    """

    def __init__(self, broker: EnqueueingBroker, owner: str, delay_ms: int | None) -> None:
        self._broker = broker
        self._owner = owner
        self._delay_ms = delay_ms
        self.written: list[UUID] = []

    def in_session(
        self, session: Session, messages: Sequence[Message[Any]], publications: Sequence[Publication]
    ) -> list[Message[Any]]:
        """Write jobs in a session's transaction, which stays usable if they are refused."""
        is_sqlite = session.get_bind().dialect.name == "sqlite"
        # Without the driver's help, SQLite takes the end of the first savepoint for the transaction's.
        with nullcontext() if is_sqlite else session.begin_nested():
            return self.on(session.connection(), messages, publications)

    def on(
        self, connection: Connection, messages: Sequence[Message[Any]], publications: Sequence[Publication]
    ) -> list[Message[Any]]:
        """Write jobs; return for each the message that carries it.

        Raises:
            NotEnqueued: a mode lacks what it needs, or somebody else has held an id for 5 s.
        """
        taken = list(messages)
        for message in messages:
            submission = submission_of(message.options)
            wrong = misuse(submission, self._delay_ms) if submission is not None else ""
            if wrong:
                raise NotEnqueued(f"actor {message.actor_name!r}: {wrong}")
        with _bounded(connection):
            # Sorted, so that two senders of the same ids wait for each other, but never crosswise.
            for index in sorted(
                range(len(taken)), key=lambda each: str(messages[each].options.get("job_id"))
            ):
                taken[index] = self._write(connection, messages[index], publications[index])
        return taken

    def _write(self, connection: Connection, message: Message[Any], publication: Publication) -> Message[Any]:
        submission = submission_of(message.options)
        row_id = new_id()
        if submission is None:
            self._insert(connection, row_id, publication)
            return message
        with _naming(submission):
            accepted = submissions.submit(
                connection, submission, publication, (self._delay_ms or 0) * _MS, row_id
            )
        if accepted.message_id != message.message_id:
            return Message.decode(accepted.body)
        if submission.mode in (REPLACE, KEEP_LAST):
            message = message.copy(options={"job_generation": accepted.generation})
            publication = self._broker.publication_of(message, self._delay_ms)
        if submission.mode == DEBOUNCE:
            self._debounce(connection, submission, publication, accepted, row_id)
        elif accepted.outbox_id == row_id or submission.mode in (REPLACE, KEEP_LAST):
            self._insert(connection, row_id, publication)
        return message

    def _debounce(
        self,
        connection: Connection,
        submission: Submission,
        publication: Publication,
        accepted: Accepted,
        row_id: UUID,
    ) -> None:
        """Put the job in the place of the earlier one, if that still waits; else write a row."""
        earlier = job_outbox.c
        replaced = connection.execute(
            update(job_outbox)
            .where(earlier.id == accepted.outbox_id, earlier.claimed_by == _DEBOUNCED)
            .values(**self._values(publication, self._debounced()))
            .returning(earlier.id)
        )
        if replaced.first() is not None:
            return
        self._insert(connection, row_id, publication, self._debounced())
        if accepted.outbox_id != row_id:
            submissions.moved(connection, submission, row_id)

    def _debounced(self) -> dict[str, Any]:
        """It stays in the outbox until it is due, and a relay publishes it then."""
        seconds = (self._delay_ms or 0) * _MS / _SECOND
        return {"claimed_by": _DEBOUNCED, "claimed_until": Clock(seconds)}

    def _insert(
        self,
        connection: Connection,
        row_id: UUID,
        publication: Publication,
        claim: dict[str, Any] | None = None,
    ) -> None:
        if claim is None:
            claim = {"claimed_by": self._owner}
            self.written.append(row_id)
        connection.execute(insert(job_outbox).values(id=row_id, **self._values(publication, claim)))

    def _values(self, publication: Publication, claim: dict[str, Any]) -> dict[str, Any]:
        enqueued_at = datetime.fromtimestamp(publication.timestamp, UTC)
        return {
            "message_id": publication.message_id,
            "queue": publication.queue,
            "actor": publication.actor,
            "body": publication.body,
            "enqueued_at": enqueued_at,
            "due_at": due_at(enqueued_at, self._delay_ms),
            **claim,
        }


@contextmanager
def _bounded(connection: Connection) -> Iterator[None]:
    """Wait for other submitters for 5 s at most; afterwards locks are waited for as before."""
    if connection.dialect.name == "sqlite":
        yield
        return
    query = "SELECT current_setting('lock_timeout'), set_config('lock_timeout', :wait, true)"
    before, _ = connection.execute(text(query), {"wait": f"{_WAIT_MS}ms"}).one()
    yield
    connection.execute(text("SELECT set_config('lock_timeout', :before, true)"), {"before": before})


@contextmanager
def _naming(submission: Submission) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        reason = _NOT_OURS.get(getattr(error.orig, "sqlstate", None) or "")
        if reason is None:
            raise
        raise NotEnqueued(
            f"expected job_id {submission.job_id!r} to be free to submit, got: {reason}; keep transactions "
            "that submit it short, and submit in the same order everywhere"
        ) from error
