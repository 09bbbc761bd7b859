"""An actor that swallows an SQL error has not completed, unless a savepoint has undone the error."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy import event
from sqlalchemy.exc import IntegrityError, InternalError
from sqlalchemy.orm import Session

from jobs.models import Account, CreditEntry
from middleware import LedgerViolation
from middleware.transport.outcome import COMPLETED

from .keyed_jobs import KeyedJobs, enter, entries, keys


def _fails(session: Session, one: str) -> None:
    """Insert the same row twice: the second time the database refuses."""
    enter(session, one)
    enter(session, one)


def test_a_swallowed_sql_error_fails_the_attempt(jobs: KeyedJobs) -> None:
    """PostgreSQL would take the COMMIT and write nothing, SQLite would write half: the attempt fails."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        with suppress(IntegrityError):
            _fails(session, one)

    ended = jobs.run(act, "a")
    assert isinstance(ended.error, LedgerViolation)
    assert "swallowed" in str(ended.error)
    assert "credit_entries" in str(ended.error)
    assert "begin_nested()" in str(ended.error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_a_swallowed_error_of_a_flush_fails_the_attempt(jobs: KeyedJobs) -> None:
    """An ORM flush that fails, and whose error the actor swallows, fails the attempt."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        session.add(Account(id=one, balance=-1))
        with suppress(IntegrityError):
            session.flush()

    ended = jobs.run(act, "a")
    assert isinstance(ended.error, LedgerViolation)
    assert "swallowed" in str(ended.error)
    assert keys(jobs.store) == []


def test_an_error_swallowed_in_a_hook_of_the_commit_fails_the_attempt(jobs: KeyedJobs) -> None:
    """A `before_commit` listener runs in the transaction, too: the error that it swallows counts."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        @event.listens_for(session, "before_commit")
        def _before_commit(session: Session) -> None:
            with suppress(IntegrityError):
                _fails(session, one)

    assert isinstance(jobs.run(act, "a").error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_an_error_undone_by_a_savepoint_is_healthy(jobs: KeyedJobs) -> None:
    """An SQL error that begin_nested() rolled back is forgotten: the rest is committed."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        with suppress(IntegrityError), session.begin_nested():
            _fails(session, "twice")
        with session.begin_nested():
            enter(session, "kept")
            with suppress(IntegrityError), session.begin_nested():
                _fails(session, "twice")
        savepoint = session.begin_nested()
        enter(session, "undone")
        savepoint.rollback()

    assert jobs.run(act, "a").outcome is COMPLETED
    assert entries(jobs.store) == ["a", "kept"]


def test_an_error_swallowed_inside_a_savepoint_that_is_released_fails(jobs: KeyedJobs) -> None:
    """A savepoint that is released keeps the error within it: the attempt fails."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        with session.begin_nested(), suppress(IntegrityError):
            _fails(session, one)

    assert isinstance(jobs.run(act, "a").error, (LedgerViolation, InternalError))
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_an_earlier_error_is_not_undone_by_a_later_savepoint(jobs: KeyedJobs) -> None:
    """An SQL error outside stays, whatever a savepoint after it rolls back."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        with suppress(IntegrityError):
            _fails(session, one)
        with suppress(Exception), session.begin_nested():
            _fails(session, f"{one} too")

    assert isinstance(jobs.run(act, "a").error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_what_is_pending_is_flushed(jobs: KeyedJobs) -> None:
    """Objects that the actor added and never flushed are committed with the key."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        session.add(CreditEntry(reference=one, account_id="a", amount=1))

    assert jobs.run(act, "a").outcome is COMPLETED
    assert entries(jobs.store) == ["a"]


def test_an_error_of_the_last_flush_is_the_jobs_error(jobs: KeyedJobs) -> None:
    """What the database refuses when the actor has returned fails the job with the database's error."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        session.add(Account(id=one, balance=-1))

    assert isinstance(jobs.run(act, "a").error, IntegrityError)
    assert keys(jobs.store) == []
