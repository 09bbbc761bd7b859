"""An actor cannot end the transaction that holds its key, and cannot return from a broken one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError, InternalError
from sqlalchemy.orm import Session

from jobs.models import Account, CreditEntry
from middleware import LedgerViolation
from middleware.effects import current_async_session, current_session
from middleware.store import Store
from middleware.store.guard import guard_of
from middleware.transport.outcome import COMPLETED

from .keyed_jobs import KeyedJobs, enter, entries, keys, rows


def _driver(session: Session) -> Any:
    """Return the driver's connection as SQLAlchemy adapts it, below everything that SQLAlchemy sees."""
    return session.connection().connection.dbapi_connection


def _commit(session: Session) -> None:
    session.commit()


def _rollback(session: Session) -> None:
    session.rollback()


def _close(session: Session) -> None:
    session.close()


def _with(session: Session) -> None:
    with session:
        pass


def _begin(session: Session) -> None:
    session.begin()


def _commit_transaction(session: Session) -> None:
    transaction = session.get_transaction()
    assert transaction is not None
    transaction.commit()


def _commit_connection(session: Session) -> None:
    session.connection().commit()


def _commit_as_sql(session: Session) -> None:
    session.execute(text("/* done */ commit"))


def _rollback_as_sql(session: Session) -> None:
    session.connection().exec_driver_sql(" ROLLBACK")


def _commit_of_the_driver(session: Session) -> None:
    _driver(session).commit()


def _commit_as_the_drivers_sql(session: Session) -> None:
    _driver(session).cursor().execute("COMMIT")


REFUSED: dict[str, Callable[[Session], None]] = {
    function.__name__: function
    for function in (
        _commit,
        _rollback,
        _close,
        _with,
        _begin,
        _commit_transaction,
        _commit_connection,
        _commit_as_sql,
        _rollback_as_sql,
        _commit_of_the_driver,
        _commit_as_the_drivers_sql,
    )
}


def test_ending_the_transaction_is_refused(jobs: KeyedJobs) -> None:
    """Whatever would end the transaction raises LedgerViolation with advice; nothing is written."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        REFUSED[one](session)

    for how in REFUSED:
        ended = jobs.run(act, how)
        assert isinstance(ended.error, LedgerViolation), how
        assert "return from the actor" in str(ended.error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_swallowing_the_refusal_does_not_help(jobs: KeyedJobs) -> None:
    """An actor that swallows the LedgerViolation and goes on fails all the same: nothing is written."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        with suppress(Exception):
            REFUSED[one](session)
        with suppress(Exception):
            enter(session, f"{one} after")

    for how in REFUSED:
        assert isinstance(jobs.run(act, how).error, LedgerViolation), how
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_a_failed_attempt_leaves_its_connection_clean(store: Store, kind: str) -> None:
    """The pool's only connection, which refused a commit and lost a statement, serves the next job."""
    jobs = KeyedJobs(Store(store.url.render_as_string(False), pool_size=1), kind, threads=1)

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, how: str, *_: Any) -> None:
        enter(session, one)
        if how == "commit":
            session.connection().commit()
        elif how == "error":
            with suppress(IntegrityError):
                enter(session, one)
        elif how == "ended":
            _driver(session).rollback()
            enter(session, one)

    for how in ("commit", "error", "ended"):
        assert isinstance(jobs.run(act, how, how).error, LedgerViolation)
        assert jobs.run(act, f"after {how}").outcome is COMPLETED
        with jobs.store.engine.begin() as connection:  # no job's transaction: everybody may commit
            connection.execute(text("INSERT INTO accounts (id, balance) VALUES (:how, 1)"), {"how": how})
    jobs.close()
    jobs.store.dispose()
    assert entries(store) == ["after commit", "after ended", "after error"]
    assert rows(store.engine, "SELECT count(*) FROM accounts") == [3]


def _reads(session: Session) -> None:
    session.execute(text("SELECT count(*) FROM accounts"))


def _writes(session: Session) -> None:
    enter(session, "after")


def _stops(session: Session) -> None: ...


GOES_ON = [_stops, _reads, _writes]


@pytest.mark.parametrize("goes_on", GOES_ON)
def test_a_rollback_below_the_session_is_found(jobs: KeyedJobs, goes_on: Callable[[Session], None]) -> None:
    """A ROLLBACK on the driver's own connection fails the attempt; what is written after it is undone."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        _driver(session).rollback()
        goes_on(session)

    ended = jobs.run(act, "a")
    assert isinstance(ended.error, LedgerViolation)
    assert "remove its COMMIT or ROLLBACK" in str(ended.error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


@pytest.mark.parametrize("goes_on", GOES_ON)
def test_a_commit_past_the_guard_is_found(jobs: KeyedJobs, goes_on: Callable[[Session], None]) -> None:
    """A COMMIT that nothing could refuse fails the attempt, and nothing more is written after it."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        guard = guard_of(session.connection())
        owner, guard.owner = guard.owner, None
        _driver(session).commit()
        guard.owner = owner
        goes_on(session)

    ended = jobs.run(act, "a")
    assert isinstance(ended.error, LedgerViolation)
    assert "check that job by hand" in str(ended.error)
    assert (entries(jobs.store), keys(jobs.store)) == (["a"], ["enter:a"])  # the actor's own doing


def test_a_rollback_of_the_connection_is_found(jobs: KeyedJobs) -> None:
    """A rollback of SQLAlchemy's connection fails the attempt; what is written after it is undone."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        session.connection().rollback()
        with suppress(Exception):
            enter(session, f"{one} after")

    assert isinstance(jobs.run(act, "a").error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


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


def test_outside_an_actor_there_is_no_session() -> None:
    """Outside a keyed actor, asking for the session raises and says how to get one."""
    for ask in (current_session, current_async_session):
        with pytest.raises(RuntimeError, match="idempotency_key"):
            ask()


def test_each_kind_of_actor_is_pointed_to_its_session(jobs: KeyedJobs) -> None:
    """A `def` actor that asks for the async session is told the other name, and the other way round."""

    @jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None:
        (current_async_session if jobs.kind == "def" else current_session)()

    error = jobs.run(act, "a").error
    assert isinstance(error, RuntimeError)
    assert ("use current_session()" if jobs.kind == "def" else "use current_async_session()") in str(error)


def test_the_session_is_gone_with_the_job(jobs: KeyedJobs) -> None:
    """A session that leaks out of its actor can write nothing more."""
    leaked = []

    @jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None:
        leaked.append(session)

    assert jobs.run(act, "a").outcome is COMPLETED
    with pytest.raises(Exception, match="permanently closed"):
        enter(leaked[0], "later")
    assert entries(jobs.store) == []
