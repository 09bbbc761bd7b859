"""How long is a `job_id` taken? From its submission until the job that carries it has ended.

A job with an idempotency key frees its id in the commit of its effect, any other one before its
acknowledgement, and a dead letter when the broker has confirmed it. What a crash leaves is freed by the
relay.
"""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Final

from dramatiq.middleware import SkipMessage
from sqlalchemy.orm import Session

from ..errors import Snooze
from ..store import Store
from ..transport.broker import JobBroker
from ..transport.delivery import Delivery
from ..transport.outcome import DISCARDED, Completed, Dead, Discarded, Duplicate
from ..transport.submission import KEEP_LAST, REPLACE, Submission, submission_of
from . import submissions
from .outbox.outbox import Outbox
from .submissions import Start

_FRESH_MS: Final = 60 * 60 * 1000
"""A job that was enqueued less than an hour ago has been heard of."""


class Lifetimes:
    """Takes part in the life of jobs with a `job_id`.

    Parameters:
        store: where the ids are.
        outbox: frees those of dead letters.
    """

    def __init__(self, store: Store, outbox: Outbox) -> None:
        self._store = store
        self._outbox = outbox

    def begin(self, delivery: Delivery) -> None:
        """Let a job start, unless a newer submission takes its place, or an older one runs.

        Raises:
            SkipMessage: it is superseded, and ends discarded.
            Snooze: it has to wait for the older one.
            sqlalchemy.exc.SQLAlchemyError: the database does not answer.
        """
        submission = submission_of(delivery.options)
        if submission is None or _is_fresh(delivery, submission):
            return
        with self._store.stateless() as connection:
            start = submissions.start(connection, submission, delivery.message_id)
            if start is Start.SUPERSEDED:
                submissions.end(connection, submission, delivery.message_id)
        if start is Start.SUPERSEDED:
            delivery.outcome = DISCARDED
            delivery.is_freed = True
            raise SkipMessage(f"a newer submission of job_id {submission.job_id!r} takes its place")
        if start is Start.BUSY:
            raise Snooze(
                timedelta(seconds=random.uniform(0.5, 1.5)),
                f"an older submission of job_id {submission.job_id!r} is running",
            )

    def end(self, broker: JobBroker, delivery: Delivery) -> None:
        """Free the id of a job that has ended; a dead letter's once the broker has it."""
        submission, outcome = submission_of(delivery.options), delivery.outcome
        if submission is None or delivery.is_freed:
            return
        if isinstance(outcome, Completed | Duplicate | Discarded):
            with self._store.stateless() as connection:
                submissions.end(connection, submission, delivery.message_id)
        elif isinstance(outcome, Dead):
            message_id = delivery.message_id
            delivery.after_confirm = lambda: self._outbox.free(broker, submission, message_id)
            with self._store.stateless() as connection:
                submissions.is_dying(connection, submission, message_id)


def free_in(session: Session, delivery: Delivery) -> None:
    """Free a job's id in the transaction of its effect."""
    submission = submission_of(delivery.options)
    if submission is not None:
        submissions.end(session.connection(), submission, delivery.message_id)


def _is_fresh(delivery: Delivery, submission: Submission) -> bool:
    """Whether there is nothing to ask and nothing to note: the first delivery, soon after the submission."""
    if submission.mode in (REPLACE, KEEP_LAST) or delivery.redelivered or delivery.attempt > 1:
        return False
    return time.time() * 1000 - delivery.message_timestamp < _FRESH_MS
