"""What becomes of a job that is submitted while another submission of it is unfinished? Its mode says so.

All of it is decided by the row of the job's `job_id`, whose lock makes concurrent submitters take turns.
"""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, case, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ..store import Clock, job_outbox, job_submissions
from ..transport.publication import Publication
from ..transport.submission import DEBOUNCE, DROP, KEEP_LAST, REPLACE, THROTTLE, Submission

_SECOND: Final = timedelta(seconds=1)
_DYING_SECONDS: Final = 60.0
"""How long a dead letter may take to be confirmed, or its job to come again, before its id is free."""
_table: Final = job_submissions
_rows: Final = job_submissions.c


class Accepted(NamedTuple):
    """The submission that carries a job.

    Attributes:
        message_id: of its message.
        body: the message.
        generation: its number, from 1.
        outbox_id: the outbox's row that it was written in.
    """

    message_id: str
    body: bytes
    generation: int
    outbox_id: UUID


class Start(enum.Enum):
    """May a job that was submitted under a `job_id` start?"""

    RUN = "run"
    SUPERSEDED = "superseded"
    """A newer submission takes its place."""
    BUSY = "busy"
    """An older one is running."""


def submit(
    connection: Connection,
    submission: Submission,
    publication: Publication,
    delay: timedelta,
    outbox_id: UUID,
) -> Accepted:
    """Submit a job, with one statement that waits for others who submit the same; return who carries it.

    Parameters:
        connection: in a transaction.
        submission: what the message says.
        publication: of the message.
        delay: until it is due.
        outbox_id: the outbox's row that it will have if it is accepted.
    """
    insert: Any = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    new = insert(_table).values(
        job_id=submission.job_id,
        mode=submission.mode,
        message_id=publication.message_id,
        body=publication.body,
        generation=1,
        outbox_id=outbox_id,
        window_until=Clock(submission.window / _SECOND) if submission.window else None,
        seen_at=Clock(delay / _SECOND),
    )
    upsert = new.on_conflict_do_update(
        index_elements=["job_id"], set_=_changes(new.excluded, submission.mode)
    )
    found = connection.execute(
        upsert.returning(_rows.message_id, _rows.body, _rows.generation, _rows.outbox_id)
    )
    return Accepted(*found.one())


def _changes(excluded: Any, mode: str) -> dict[str, Any]:
    """Return what a submission changes in the row of an earlier one."""
    if mode == DROP:
        return {"job_id": excluded.job_id}  # nothing: it locks the row, and has it returned
    names = ["mode", "message_id", "body", "seen_at", "window_until"]
    if mode == THROTTLE:
        is_over = or_(_rows.window_until.is_(None), _rows.window_until <= Clock())
        return {name: case((is_over, excluded[name]), else_=_rows[name]) for name in [*names, "outbox_id"]}
    # The row in the outbox stays the earlier one's, so that `debounce` finds it.
    return {**{name: excluded[name] for name in names}, "generation": _rows.generation + 1, "ending_at": None}


def moved(connection: Connection, submission: Submission, outbox_id: UUID) -> None:
    """Take note that a debounced job was written in another row of the outbox."""
    connection.execute(update(_table).where(_rows.job_id == submission.job_id).values(outbox_id=outbox_id))


def start(connection: Connection, submission: Submission, message_id: str) -> Start:
    """Ask whether a job may start, and take note that it does.

    A job whose row is gone, or another's, runs: its own may have been forgotten while it waited.
    """
    heard: dict[str, Any] = {"seen_at": Clock(), "ending_at": None}
    if submission.mode not in (REPLACE, KEEP_LAST):
        connection.execute(
            update(_table).where(_is(submission), _rows.message_id == message_id).values(**heard)
        )
        return Start.RUN
    may_run = _is(submission) & (_rows.generation == submission.generation)
    if submission.mode == KEEP_LAST:
        may_run &= or_(_rows.running.is_(None), _rows.running == message_id)
        heard["running"] = message_id
    started = connection.execute(update(_table).where(may_run).values(**heard).returning(_rows.job_id))
    if started.first() is not None:
        return Start.RUN
    newest = connection.execute(select(_rows.generation).where(_is(submission))).scalar()
    if newest is None:
        return Start.RUN
    return Start.SUPERSEDED if newest > submission.generation else Start.BUSY


def end(connection: Connection, submission: Submission, message_id: str) -> None:
    """Free a job's id, as far as it is its own."""
    if submission.mode == THROTTLE:
        return  # until its window is over
    if submission.mode in (REPLACE, KEEP_LAST):
        is_running = _is(submission) & (_rows.running == message_id)
        changes = {"running": None, "seen_at": Clock(), "ending_at": None}
        connection.execute(update(_table).where(is_running).values(changes))
        return
    connection.execute(delete(_table).where(_is(submission), _rows.message_id == message_id))


def is_dying(connection: Connection, submission: Submission, message_id: str) -> None:
    """Take note that a job becomes a dead letter, in case the process does not live to free its id."""
    holder = _rows.running if submission.mode == KEEP_LAST else _rows.message_id
    connection.execute(update(_table).where(_is(submission), holder == message_id).values(ending_at=Clock()))


def sweep(connection: Connection, forgotten_after: timedelta) -> int:
    """Free ids that a crash left, and forget rows that mean nothing any more; return how many.

    Parameters:
        connection: of the database.
        forgotten_after: how long nothing may be heard of a job before its id is free.
    """
    waits = select(job_outbox.c.message_id).where(job_outbox.c.message_id == _rows.message_id).exists()
    is_over = or_(
        (_rows.mode == THROTTLE) & (_rows.window_until < Clock()),
        (_rows.mode != THROTTLE) & (_rows.seen_at < Clock(-(forgotten_after / _SECOND))) & ~waits,
        _rows.mode.in_((DROP, DEBOUNCE)) & (_rows.ending_at < Clock(-_DYING_SECONDS)),
    )
    is_stuck = (_rows.mode == KEEP_LAST) & (_rows.ending_at < Clock(-_DYING_SECONDS))
    connection.execute(update(_table).where(is_stuck).values(running=None, ending_at=None))
    return connection.execute(delete(_table).where(is_over)).rowcount


def _is(submission: Submission) -> Any:
    return _rows.job_id == submission.job_id
