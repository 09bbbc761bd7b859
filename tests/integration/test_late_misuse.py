"""A late actor that misuses its block, or none, has failed: nothing half done counts as completed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from middleware import LedgerViolation, effect
from middleware.transport.outcome import COMPLETED, DUPLICATE

from .keyed_jobs import KeyedJobs, enter, entries, keys
from .late_jobs import late_actor


def test_a_failure_that_the_actor_swallows_is_the_jobs(jobs: KeyedJobs) -> None:
    """An actor that returns although its block failed has not completed."""

    def write(session: Session, one: str) -> None:
        enter(session, one)
        raise RuntimeError("the block fails")

    error = jobs.run(late_actor(jobs, write=write, swallow=RuntimeError), "a").error
    assert isinstance(error, RuntimeError)
    assert keys(jobs.store) == []


def test_a_swallowed_sql_error_fails_the_block(jobs: KeyedJobs) -> None:
    """PostgreSQL would answer COMMIT with a silent ROLLBACK, and SQLite commit the rest: neither happens."""

    def write(session: Session, one: str) -> None:
        enter(session, one)
        with suppress(IntegrityError):
            enter(session, one)

    ended = jobs.run(late_actor(jobs, write=write), "a")
    assert isinstance(ended.error, LedgerViolation)
    assert "an SQL error that it swallowed" in str(ended.error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


@pytest.mark.parametrize("swallow", [LookupError, Exception])
def test_the_session_refuses_to_commit(jobs: KeyedJobs, swallow: type[Exception]) -> None:
    """A commit() in the block is refused and fails the attempt, swallowed or not."""

    def write(session: Session, one: str) -> None:
        enter(session, one)
        session.commit()

    assert isinstance(jobs.run(late_actor(jobs, write=write, swallow=swallow), "a").error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_an_actor_that_never_enters_has_failed(jobs: KeyedJobs) -> None:
    """Without its block the job would come again and compute for ever: the error says what to write."""
    error = jobs.run(late_actor(jobs, times=0), "a").error
    assert isinstance(error, LedgerViolation)
    assert str(error).startswith("actor 'act': expected an actor with effect='late' to enter `with effect()")
    assert keys(jobs.store) == []


def test_a_second_block_is_refused(jobs: KeyedJobs) -> None:
    """What the first block wrote stays, the second writes nothing, and the next attempt is a duplicate."""
    act = late_actor(jobs, times=2)
    error = jobs.run(act, "a").error
    assert isinstance(error, LedgerViolation)
    assert "to be entered once" in str(error)
    assert entries(jobs.store) == ["a"]
    assert jobs.run(act, "a").outcome is DUPLICATE


def test_a_block_within_the_block_is_refused(jobs: KeyedJobs) -> None:
    """Entering in the block raises, and undoes it."""

    def write(session: Session, one: str) -> None:
        enter(session, one)
        with effect():
            pass

    assert isinstance(jobs.run(late_actor(jobs, write=write), "a").error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_the_other_form_is_refused(jobs: KeyedJobs) -> None:
    """A `def` actor that writes `async with`, or the other way round, is told the form."""

    def act(one: str) -> None:
        effect().__aenter__().send(None)

    async def act_async(one: str) -> None:
        with effect():
            pass

    function, form = (act, "`with`") if jobs.kind == "def" else (act_async, "`async with`")
    error = jobs.run(jobs.declare(function, "act", idempotency_key="k:{one}", effect="late"), "a").error
    assert isinstance(error, LedgerViolation)
    assert f"write {form}, as in any `{jobs.kind}` actor" in str(error)


def test_a_direct_call_within_a_transaction_is_refused(jobs: KeyedJobs) -> None:
    """A late actor cannot compute outside a transaction that its caller has opened."""
    late = late_actor(jobs)

    def caller(one: str) -> None:
        late(one)

    async def caller_async(one: str) -> None:
        await late(one)

    function = caller if jobs.kind == "def" else caller_async
    error = jobs.run(jobs.declare(function, "caller", idempotency_key="caller:{one}"), "a").error
    assert isinstance(error, LedgerViolation)
    assert "'late' to be called outside any ledger transaction" in str(error)


def test_outside_an_actor_there_is_no_block(jobs: KeyedJobs) -> None:
    """Outside a late actor effect() raises and says how to get one; so it does once the job has ended."""
    assert jobs.run(late_actor(jobs), "a").outcome is COMPLETED
    with pytest.raises(RuntimeError, match='declare effect="late"'):
        effect()
