"""A direct call of a keyed actor inside another one joins its transaction, as a savepoint."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from dramatiq import Actor
from sqlalchemy.exc import IntegrityError, InternalError

from middleware import KeyConflict, LedgerViolation
from middleware.effects import current_async_session, current_session
from middleware.transport.outcome import COMPLETED

from ..journal import Journal
from .keyed_jobs import KeyedJobs, enter, entries, keys

INNER = "inner:{one}"
OUTER = "outer:{one}"


def declare_inner(jobs: KeyedJobs, work: Callable[..., None]) -> Any:
    """Declare the actor that is called, or awaited."""

    def inner(one: str, two: str = "2") -> str:
        work(current_session(), one)
        return one

    async def inner_async(one: str, two: str = "2") -> str:
        await current_async_session().run_sync(work, one)
        return one

    return jobs.declare(inner if jobs.kind == "def" else inner_async, "inner", idempotency_key=INNER)


def declare_outer(
    jobs: KeyedJobs, call: Callable[..., Any], *, swallow: type[Exception] = LookupError, fail: bool = False
) -> Actor[..., Any]:
    """Declare an actor that enters its row, calls `call` for each of its arguments, and may fail then."""
    results = Journal()

    def outer(one: str, calls: list[list[str]]) -> None:
        enter(current_session(), one)
        for args in calls:
            with suppress(swallow):
                results.note(call(*args))
        if fail:
            raise RuntimeError("outer fails")

    async def outer_async(one: str, calls: list[list[str]]) -> None:
        await current_async_session().run_sync(enter, one)
        for args in calls:
            with suppress(swallow):
                results.note(await call(*args))
        if fail:
            raise RuntimeError("outer fails")

    actor = jobs.declare(outer if jobs.kind == "def" else outer_async, "outer", idempotency_key=OUTER)
    actor.__dict__["results"] = results
    return actor


def test_a_direct_call_is_committed_with_the_outer_job(jobs: KeyedJobs) -> None:
    """Both effects and both keys are committed together; the call returns what the actor returns."""
    outer = declare_outer(jobs, declare_inner(jobs, enter))
    assert jobs.run(outer, "a", [["b"], ["c"]]).outcome is COMPLETED
    assert entries(jobs.store) == ["a", "b", "c"]
    assert keys(jobs.store) == ["inner:b", "inner:c", "outer:a"]
    assert outer.__dict__["results"].entries == ["b", "c"]


def test_a_direct_call_is_undone_with_the_outer_job(jobs: KeyedJobs) -> None:
    """If the outer job fails, the inner effect and its key are gone, too."""
    outer = declare_outer(jobs, declare_inner(jobs, enter), fail=True)
    assert isinstance(jobs.run(outer, "a", [["b"]]).error, RuntimeError)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_a_direct_call_whose_key_is_spent_does_nothing(jobs: KeyedJobs) -> None:
    """A second call with the same key returns None, and the outer job completes."""
    outer = declare_outer(jobs, declare_inner(jobs, enter))
    assert jobs.run(outer, "a", [["b"], ["b"]]).outcome is COMPLETED
    assert jobs.run(outer, "c", [["b"]]).outcome is COMPLETED
    assert entries(jobs.store) == ["a", "b", "c"]
    assert outer.__dict__["results"].entries == ["b", None, None]


def test_a_direct_call_that_fails_is_undone_alone(jobs: KeyedJobs) -> None:
    """An error of the inner actor that the outer one swallows undoes the inner effect and frees its key."""

    def work(session: Any, one: str) -> None:
        enter(session, one)
        if one == "bad":
            raise ValueError(one)

    outer = declare_outer(jobs, declare_inner(jobs, work), swallow=ValueError)
    assert jobs.run(outer, "a", [["bad"], ["b"]]).outcome is COMPLETED
    assert entries(jobs.store) == ["a", "b"]
    assert keys(jobs.store) == ["inner:b", "outer:a"]


def test_an_sql_error_that_the_inner_actor_swallows_undoes_it_alone(jobs: KeyedJobs) -> None:
    """A direct call that returns from an aborted transaction raises LedgerViolation; the outer goes on."""

    def work(session: Any, one: str) -> None:
        with suppress(IntegrityError):
            enter(session, one)
            enter(session, one)

    outer = declare_outer(jobs, declare_inner(jobs, work), swallow=LedgerViolation)
    assert jobs.run(outer, "a", [["b"]]).outcome is COMPLETED
    assert outer.__dict__["results"].entries == []
    assert (entries(jobs.store), keys(jobs.store)) == (["a"], ["outer:a"])


def test_a_direct_call_with_other_arguments_is_a_conflict(jobs: KeyedJobs) -> None:
    """The same key with other arguments raises KeyConflict in the outer actor."""
    outer = declare_outer(jobs, declare_inner(jobs, enter))
    ended = jobs.run(outer, "a", [["b"], ["b", "other"]])
    assert isinstance(ended.error, KeyConflict)
    assert entries(jobs.store) == []


def test_the_inner_actor_cannot_commit_either(jobs: KeyedJobs) -> None:
    """A commit() in the inner actor is refused and fails the outer job, even if swallowed."""

    def work(session: Any, one: str) -> None:
        enter(session, one)
        session.commit()

    outer = declare_outer(jobs, declare_inner(jobs, work), swallow=LedgerViolation)
    assert isinstance(jobs.run(outer, "a", [["b"]]).error, LedgerViolation)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


def test_an_inner_call_that_meets_an_aborted_transaction_fails_the_job(jobs: KeyedJobs) -> None:
    """An SQL error that the outer actor swallowed before a direct call is not undone by the call."""
    inner = declare_inner(jobs, enter)

    def spoiled(*args: str) -> Any:
        if jobs.kind == "def":
            with suppress(IntegrityError):
                enter(current_session(), "a")
            return inner(*args)
        return _spoiled_async(*args)

    async def _spoiled_async(*args: str) -> Any:
        with suppress(IntegrityError):
            await current_async_session().run_sync(enter, "a")
        return await inner(*args)

    outer = declare_outer(jobs, spoiled, swallow=Exception)
    assert isinstance(jobs.run(outer, "a", [["b"]]).error, (LedgerViolation, InternalError))
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


@pytest.mark.parametrize("kind", ["def"])
def test_a_coroutine_cannot_join_a_threads_transaction(jobs: KeyedJobs) -> None:
    """A direct call of an `async def` actor from a `def` one raises and says what to do."""

    async def inner(one: str) -> None: ...

    outer = declare_outer(jobs, jobs.declare(inner, "inner", idempotency_key=INNER))
    error = jobs.run(outer, "a", [["b"]]).error
    assert isinstance(error, LedgerViolation)
    assert "make both the same, or send it" in str(error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])


@pytest.mark.parametrize("kind", ["async def"])
def test_a_thread_cannot_join_a_coroutines_transaction(jobs: KeyedJobs) -> None:
    """A direct call of a `def` actor from an `async def` one raises and says what to do."""

    def inner(one: str) -> None: ...

    outer = declare_outer(jobs, jobs.declare(inner, "inner", idempotency_key=INNER))
    error = jobs.run(outer, "a", [["b"]]).error
    assert isinstance(error, LedgerViolation)
    assert "make both the same, or send it" in str(error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])
