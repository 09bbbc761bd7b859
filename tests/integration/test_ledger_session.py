"""An actor cannot end the transaction that holds its key, and cannot return from a broken one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

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
