"""An effect outside the database: its intent is committed before the call, its confirmation after."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy.orm import Session

from middleware import BusinessReject, Invalid, KeyConflict, NotDone, UnknownOutcome, current_key, effect
from middleware.effects import current_key_async
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from ..journal import Journal
from .external_jobs import attempts, external_actor
from .keyed_jobs import KeyedJobs, enter, entries, keys, rows


def test_a_confirmed_call_spends_the_key(jobs: KeyedJobs) -> None:
    """The provider is handed the job's key; afterwards the key is in the ledger, the attempt is confirmed."""
    journal = Journal()
    message = jobs.send(external_actor(jobs, journal.note), "a")
    assert jobs.wait_for(message).outcome is COMPLETED
    assert journal.entries == ["pay:a"]
    assert rows(jobs.store.engine, "SELECT key, actor, message_id FROM job_ledger") == [
        ("pay:a", "act", message.message_id)
    ]
    assert attempts(jobs.store) == [(1, "confirmed")]


def test_a_second_delivery_is_a_duplicate(jobs: KeyedJobs) -> None:
    """A job whose call was confirmed calls nobody."""
    journal = Journal()
    act = external_actor(jobs, journal.note)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert jobs.run(act, "a").outcome is DUPLICATE
    assert journal.entries == ["pay:a"]
    assert attempts(jobs.store) == [(1, "confirmed")]


def test_other_arguments_are_a_conflict(jobs: KeyedJobs) -> None:
    """The same key with other arguments calls nobody, before and after the confirmation."""
    journal = Journal()

    def call(key: str) -> None:
        journal.note(key)
        if len(journal.entries) == 1:
            raise TimeoutError("no answer")

    act = external_actor(jobs, call)
    assert isinstance(jobs.run(act, "a").error, UnknownOutcome)
    assert isinstance(jobs.run(act, "a", "other").error, KeyConflict)
    assert jobs.run(act, "b").outcome is COMPLETED
    assert isinstance(jobs.run(act, "b", "other").error, KeyConflict)
    assert journal.entries == ["pay:a", "pay:b"]


def test_the_intent_is_committed_before_the_call(jobs: KeyedJobs) -> None:
    """While the call is made, others see the attempt, its holder and when it asked; no connection is held."""
    seen: list[Any] = []

    def call(key: str) -> None:
        pool: Any = jobs.store.engine.pool
        seen.append(pool.checkedout())
        seen.extend(
            rows(jobs.store.engine, "SELECT key, state, asked_at IS NULL, holder <> '' FROM job_intents")
        )

    assert jobs.run(external_actor(jobs, call), "a").outcome is COMPLETED
    assert seen == [0, ("pay:a", "held", 0, 1)]


def test_rows_are_committed_with_the_confirmation(jobs: KeyedJobs) -> None:
    """What the actor writes in its block, its result, the key and the confirmation are one commit."""
    journal = Journal()
    act = external_actor(jobs, journal.note, write=enter, result={"id": "ch_7"})
    assert jobs.run(act, "a").outcome is COMPLETED
    assert entries(jobs.store) == ["a"]
    assert keys(jobs.store) == ["pay:a"]
    assert rows(jobs.store.engine, "SELECT state, result FROM job_intents") == [
        ("confirmed", '{"id": "ch_7"}')
    ]
    assert jobs.run(act, "a").outcome is DUPLICATE


NOTHING_HAPPENED = [
    ConnectionRefusedError("refused"),
    NotDone("the provider says so"),
    Invalid("no such order"),
]


@pytest.mark.parametrize("error", NOTHING_HAPPENED, ids=lambda error: type(error).__name__)
def test_an_attempt_that_did_nothing_is_released(jobs: KeyedJobs, error: Exception) -> None:
    """The job fails as any other does, its key stays free, and the next delivery makes the next attempt."""
    journal = Journal()

    def call(key: str) -> None:
        journal.note(key)
        if len(journal.entries) == 1:
            raise error

    act = external_actor(jobs, call)
    ended = jobs.run(act, "a")
    assert type(ended.error) is type(error)
    assert (keys(jobs.store), attempts(jobs.store)) == ([], [(1, "released")])
    assert jobs.run(act, "a").outcome is COMPLETED
    assert journal.entries == ["pay:a", "pay:a"]
    assert attempts(jobs.store) == [(1, "released"), (2, "confirmed")]


@pytest.mark.parametrize(
    "error", [TimeoutError("no answer"), ConnectionResetError("reset"), ValueError("?")], ids=repr
)
def test_an_attempt_that_may_have_done_something_is_not_repeated(jobs: KeyedJobs, error: Exception) -> None:
    """The job is a dead letter of kind unknown_outcome at once, and so is every further delivery of it."""
    journal = Journal()

    def call(key: str) -> None:
        journal.note(key)
        raise error

    act = external_actor(jobs, call)
    ended = jobs.run(act, "a")
    assert isinstance(ended.outcome, Dead)
    assert ended.outcome.kind == "unknown_outcome"
    assert isinstance(ended.error, UnknownOutcome)
    assert type(ended.error.__cause__) is type(error)
    assert "'pay:a'" in str(ended.error)
    assert (keys(jobs.store), attempts(jobs.store)) == ([], [(1, "unknown")])
    again = jobs.run(act, "a")
    assert isinstance(again.outcome, Dead)
    assert again.outcome.kind == "unknown_outcome"
    assert journal.entries == ["pay:a"]


@pytest.mark.parametrize(
    "error", [TimeoutError("the database"), BusinessReject("no"), ValueError("?")], ids=repr
)
def test_what_fails_before_the_key_is_asked_for_did_nothing(jobs: KeyedJobs, error: Exception) -> None:
    """An actor that asks for its key before it calls may fail before in any way and is tried again."""
    journal = Journal()

    def before(one: str) -> None:
        journal.note(one)
        if len(journal.entries) == 1:
            raise error

    act = external_actor(jobs, journal.note, before=before)
    assert type(jobs.run(act, "a").error) is type(error)
    assert attempts(jobs.store) == [(1, "released")]
    assert jobs.run(act, "a").outcome is COMPLETED
    assert journal.entries == ["a", "a", "pay:a"]


def test_an_actor_that_never_asks_for_its_key_may_have_called(jobs: KeyedJobs) -> None:
    """Without current_key() in the actor nobody knows when its call began: any doubt makes it unknown."""
    journal = Journal()

    def act(one: str) -> None:
        journal.note(one)
        raise ValueError("?")

    async def act_async(one: str) -> None:
        journal.note(one)
        raise ValueError("?")

    function = act if jobs.kind == "def" else act_async
    actor = jobs.declare(function, "act", idempotency_key="pay:{one}", effect="external")
    assert isinstance(jobs.run(actor, "a").error, UnknownOutcome)
    assert isinstance(jobs.run(actor, "a").error, UnknownOutcome)
    assert journal.entries == ["a"]


def test_rows_that_fail_after_the_call_make_it_unknown(jobs: KeyedJobs) -> None:
    """The call was made: an error of the actor's own rows says nothing about it, whatever its type."""

    def write(session: Session, one: str) -> None:
        raise ConnectionRefusedError("of another server")

    journal = Journal()
    act = external_actor(jobs, journal.note, write=write)
    error = jobs.run(act, "a").error
    assert isinstance(error, UnknownOutcome)
    assert "the call was made, and its confirmation failed" in str(error)
    assert (keys(jobs.store), attempts(jobs.store)) == ([], [(1, "unknown")])


@pytest.mark.parametrize("swallow", [True, False])
def test_a_swallowed_sql_error_is_a_failed_attempt(jobs: KeyedJobs, swallow: bool) -> None:
    """A confirmation whose transaction is broken confirms nothing: the job does not count as completed."""

    def write(session: Session, one: str) -> None:
        enter(session, one)
        with suppress(Exception):
            enter(session, one)

    act = external_actor(jobs, lambda key: None, write=write, swallow=Exception if swallow else LookupError)
    assert isinstance(jobs.run(act, "a").error, UnknownOutcome)
    assert (entries(jobs.store), keys(jobs.store), attempts(jobs.store)) == ([], [], [(1, "unknown")])


@pytest.mark.parametrize(
    ("result", "why"),
    [({"at": object()}, "plain JSON"), ("x" * 5000, "at most 4096 characters")],
    ids=["type", "length"],
)
def test_a_result_that_cannot_be_kept(jobs: KeyedJobs, result: Any, why: str) -> None:
    """The call was made, so the error is an unknown outcome that names the rule."""
    error = jobs.run(external_actor(jobs, lambda key: None, write=enter, result=result), "a").error
    assert isinstance(error, UnknownOutcome)
    assert why in str(error)


def test_on_unknown_retry_calls_again(jobs: KeyedJobs) -> None:
    """An actor that opts out fails as any other does, and the next delivery calls again."""
    journal = Journal()

    def call(key: str) -> None:
        journal.note(key)
        if len(journal.entries) == 1:
            raise TimeoutError("no answer")

    act = external_actor(jobs, call, on_unknown="retry")
    assert isinstance(jobs.run(act, "a").error, TimeoutError)
    assert jobs.run(act, "a").outcome is COMPLETED
    assert journal.entries == ["pay:a", "pay:a"]
    assert attempts(jobs.store) == [(1, "released"), (2, "confirmed")]


def test_the_key_may_be_asked_for_again(jobs: KeyedJobs) -> None:
    """An actor that asks twice, also in its confirmation and after it, gets its key and has completed."""
    journal = Journal()

    def act(one: str, two: str = "2") -> None:
        current_key()
        journal.note(current_key())
        with effect():
            journal.note(current_key())
        journal.note(current_key())

    async def act_async(one: str, two: str = "2") -> None:
        await current_key_async()
        journal.note(await current_key_async())
        async with effect():
            journal.note(await current_key_async())
        journal.note(await current_key_async())

    function = act if jobs.kind == "def" else act_async
    actor = jobs.declare(function, "act", idempotency_key="pay:{one}", effect="external")
    assert jobs.run(actor, "a").outcome is COMPLETED
    assert journal.entries == ["pay:a"] * 3
    assert attempts(jobs.store) == [(1, "confirmed")]


def test_a_direct_call_outside_a_job_takes_effect_once(store: Store) -> None:
    """Calling an external actor as a function spends its key; a second call returns None and calls nobody."""
    jobs, journal = KeyedJobs(store, "def"), Journal()
    act = external_actor(jobs, journal.note)
    assert act("a") == "done"
    assert act("a") is None
    assert journal.entries == ["pay:a"]


def test_outside_an_actor_there_is_no_key(jobs: KeyedJobs) -> None:
    """Outside an external actor current_key() raises; in one of the other kind it names the other form."""
    with pytest.raises(RuntimeError, match='declare effect="external"'):
        current_key()

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        current_key()

    assert 'declare effect="external"' in str(jobs.run(act, "a").error)
    with pytest.raises(RuntimeError, match="effect='late' or 'external'"):
        effect()


def test_a_coroutine_is_pointed_to_its_own_form(store: Store) -> None:
    """current_key() in an `async def` actor would block its event loop: it names the form that does not."""
    jobs = KeyedJobs(store, "async def")

    async def act(one: str) -> None:
        current_key()

    actor = jobs.declare(act, "act", idempotency_key="pay:{one}", effect="external")
    ended = jobs.run(actor, "a")
    assert isinstance(ended.error, RuntimeError)
    assert "write `await current_key_async()`" in str(ended.error)
    jobs.close()
