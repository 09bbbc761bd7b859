"""With `reconcile=` the provider is asked about an attempt that was not confirmed, before another is made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from dramatiq.middleware import TimeLimitExceeded
from sqlalchemy.orm import Session

from middleware import Reconciled, Snooze, UnknownOutcome, effect
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead, Outcome, Retry

from ..journal import Journal
from .external_jobs import Rival, attempts, external_actor
from .keyed_jobs import Gate, KeyedJobs, enter, entries, keys, rows


def asked(jobs: KeyedJobs, answer: Any, **options: Any) -> tuple[Any, Journal]:
    """Declare an actor whose provider gives an answer, with one attempt that was not confirmed."""
    journal = Journal()

    def reconcile(key: str) -> Any:
        journal.note(f"asked about {key}")
        if isinstance(answer, Exception):
            raise answer
        return answer

    act = external_actor(jobs, lambda key: journal.note(f"called with {key}"), reconcile=reconcile, **options)
    Rival(jobs).ask()
    return act, journal


def test_done_is_confirmed(jobs: KeyedJobs) -> None:
    """What the provider has done is not done again: its attempt is confirmed and the key is spent."""
    act, journal = asked(jobs, Reconciled.DONE)
    assert jobs.run(act, "a").outcome is DUPLICATE
    assert journal.entries == ["asked about pay:a"]
    assert (keys(jobs.store), attempts(jobs.store)) == (["pay:a"], [(1, "confirmed")])


def test_not_done_is_called_again(jobs: KeyedJobs) -> None:
    """What the provider has not done is done now, as the next attempt."""
    act, journal = asked(jobs, Reconciled.NOT_DONE)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert journal.entries == ["asked about pay:a", "called with pay:a"]
    assert attempts(jobs.store) == [(1, "released"), (2, "confirmed")]


@pytest.mark.parametrize(
    "answer", [Reconciled.UNKNOWN, "perhaps", None, ConnectionRefusedError("away")], ids=repr
)
def test_no_answer_is_asked_for_again(jobs: KeyedJobs, answer: Any) -> None:
    """If the provider cannot say, or not be asked, the job is tried again, and is unknown_outcome at last."""
    act, journal = asked(jobs, answer, max_retries=1, min_backoff=100, max_backoff=100)
    message = jobs.send(act, "a")
    first, last = jobs.wait_for(message), jobs.wait_for(message, 2)
    assert isinstance(first.outcome, Retry)
    assert isinstance(last.outcome, Dead)
    assert (first.outcome.kind, last.outcome.kind) == ("unknown_outcome", "unknown_outcome")
    assert isinstance(last.error, UnknownOutcome)
    assert journal.entries == ["asked about pay:a"] * 2
    assert (keys(jobs.store), attempts(jobs.store)) == ([], [(1, "unknown")])


def test_a_call_without_an_answer_is_asked_about_with_the_next_attempt(jobs: KeyedJobs) -> None:
    """A read timeout is no time to ask: the provider may still be at it. The retry asks."""
    journal = Journal()

    def call(key: str) -> None:
        journal.note("called")
        raise TimeoutError("no answer")

    def reconcile(key: str) -> Reconciled:
        journal.note("asked")
        return Reconciled.DONE

    act = external_actor(jobs, call, reconcile=reconcile, max_retries=1, min_backoff=100, max_backoff=100)
    message = jobs.send(act, "a")
    first = jobs.wait_for(message).outcome
    assert isinstance(first, Retry)
    assert first.kind == "unknown_outcome"
    assert jobs.wait_for(message, 2).outcome is DUPLICATE
    assert journal.entries == ["called", "asked"]


def test_a_snooze_of_the_provider_is_one(jobs: KeyedJobs) -> None:
    """reconcile= may put the job off, and no attempt is used."""
    act, _ = asked(jobs, Snooze(timedelta(hours=1)))
    assert jobs.run(act, "a").outcome.name == "snoozed"


def test_reconcile_may_confirm_with_rows(jobs: KeyedJobs) -> None:
    """In reconcile= the effect block confirms the earlier attempt, with the actor's rows and a result."""

    def write(session: Session, one: str) -> None:
        enter(session, one)

    def ask(one: str, two: str = "2") -> str:
        with effect(result="ch_7") as session:
            write(session, one)
        return "done"

    async def ask_async(one: str, two: str = "2") -> str:
        async with effect(result="ch_7") as session:
            await session.run_sync(write, one)
        return "done"

    def act(one: str, two: str = "2") -> None: ...

    async def act_async(one: str, two: str = "2") -> None: ...

    options: dict[str, Any] = {"idempotency_key": "pay:{one}", "effect": "external"}
    if jobs.kind == "def":
        actor = jobs.declare(act, "act", reconcile=ask, **options)
    else:
        actor = jobs.declare(act_async, "act", reconcile=ask_async, **options)
    Rival(jobs).ask()
    assert jobs.run(actor, "a").outcome is DUPLICATE
    assert (entries(jobs.store), keys(jobs.store)) == (["a"], ["pay:a"])
    assert rows(jobs.store.engine, "SELECT state, result FROM job_intents") == [("confirmed", '"ch_7"')]


def test_reconcile_has_the_actors_time_limit(jobs: KeyedJobs) -> None:
    """A provider that does not answer is waited for as long as the actor may take, and asked again later."""
    gate = Gate()

    def reconcile(key: str) -> Reconciled:
        while not gate.opened.wait(0.02):
            pass
        return Reconciled.DONE

    act = external_actor(jobs, lambda key: None, reconcile=reconcile, time_limit=300)
    Rival(jobs).ask()
    error = jobs.run(act, "a").error
    gate.opened.set()
    assert isinstance(error, TimeLimitExceeded)
    assert (keys(jobs.store), attempts(jobs.store)) == ([], [(1, "unknown")])


def test_the_actor_has_its_own_time_limit_after_reconcile(jobs: KeyedJobs) -> None:
    """The clock starts anew for the call that follows a NOT_DONE."""
    gate = Gate()

    def call(key: str) -> None:
        while not gate.opened.wait(0.02):
            pass

    act = external_actor(jobs, call, reconcile=lambda key: Reconciled.NOT_DONE, time_limit=300)
    Rival(jobs).ask()
    outcome: Outcome = jobs.run(act, "a").outcome
    gate.opened.set()
    assert isinstance(outcome, Dead)
    assert attempts(jobs.store) == [(1, "released"), (2, "unknown")]
