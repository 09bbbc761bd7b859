"""An effect takes place once per key, together with the key, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.orm import Session

from middleware import BusinessReject, Invalid, KeyConflict
from middleware.store import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from ..journal import Journal
from .keyed_jobs import KeyedJobs, enter, entries, keys, rows
from .late_jobs import late_actor


def test_effect_and_key_are_committed_together(jobs: KeyedJobs) -> None:
    """A completed job leaves its effect, and a ledger row with key, actor, message and a hash of 16 bytes."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    message = jobs.send(act, "a")
    assert jobs.wait_for(message).outcome is COMPLETED
    assert entries(jobs.store) == ["a"]
    (row,) = rows(jobs.store.engine, "SELECT key, actor, message_id, length(args_hash) FROM job_ledger")
    assert row == ("enter:a", "act", message.message_id, 16)


def test_a_second_delivery_is_a_duplicate(jobs: KeyedJobs) -> None:
    """A job whose key is spent ends as a duplicate; its actor does not run."""
    journal = Journal()

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        journal.note(one)
        enter(session, one)

    assert jobs.run(act, "a").outcome is COMPLETED
    assert jobs.run(act, "a").outcome is DUPLICATE
    assert jobs.run(act, one="a", three="3").outcome is DUPLICATE
    assert journal.entries == ["a"]
    assert entries(jobs.store) == ["a"]


@pytest.mark.parametrize("error", [BusinessReject, RuntimeError])
def test_a_failed_job_leaves_its_key_free(jobs: KeyedJobs, error: type[Exception]) -> None:
    """A job that fails writes nothing, and the next one with its key runs."""
    journal = Journal()

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        journal.note(one)
        if len(journal.entries) == 1:
            raise error("not this time")

    failed = jobs.run(act, "a")
    assert isinstance(failed.error, error)
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])
    assert jobs.run(act, "a").outcome is COMPLETED
    assert (entries(jobs.store), keys(jobs.store)) == (["a"], ["enter:a"])


def test_other_arguments_are_a_conflict(jobs: KeyedJobs) -> None:
    """The same key with other arguments is a dead letter of kind key_conflict, and no duplicate."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, *_: Any) -> None:
        enter(session, f"{one}{two}")

    assert jobs.run(act, "a", "x").outcome is COMPLETED
    ended = jobs.run(act, "a", "y")
    assert isinstance(ended.error, KeyConflict)
    assert "'enter:a'" in str(ended.error)
    assert isinstance(ended.outcome, Dead)
    assert ended.outcome.kind == "key_conflict"
    assert entries(jobs.store) == ["ax"]


def test_a_colon_in_a_value_does_not_move_a_field(jobs: KeyedJobs) -> None:
    """("a:b", "c") and ("a", "b:c") are two jobs."""

    @jobs.actor("enter:{one}:{two}")
    def act(session: Session, one: str, two: str, *_: Any) -> None:
        enter(session, f"{one}|{two}")

    assert jobs.run(act, "a:b", "c").outcome is COMPLETED
    assert jobs.run(act, "a", "b:c").outcome is COMPLETED
    assert jobs.run(act, "a%3Ab", "c").outcome is COMPLETED
    assert keys(jobs.store) == ["enter:a%253Ab:c", "enter:a%3Ab:c", "enter:a:b%3Ac"]


def test_text_of_any_kind_is_stored_as_it_is(jobs: KeyedJobs) -> None:
    """Quotes, backslashes and characters beyond ASCII in a value reach the ledger unchanged."""
    value = "O'Neil \\' \\\\ \"x\" ünï 雪 $1 %s {}"

    @jobs.actor("enter:{one}")
    def act(session: Session, *_: Any) -> None: ...

    assert jobs.run(act, value).outcome is COMPLETED
    assert keys(jobs.store) == ["enter:" + value.replace("%", "%25")]
    assert jobs.run(act, value).outcome is DUPLICATE


def test_a_renamed_actor_keeps_its_keys(store: Store, kind: str) -> None:
    """A key is unique on its own: under a new name, the actor's old jobs are still duplicates."""
    for name, outcome in (("old_name", COMPLETED), ("new_name", DUPLICATE)):
        jobs = KeyedJobs(store, kind)

        @jobs.actor("enter:{one}", name=name)
        def act(session: Session, one: str, *_: Any) -> None:
            enter(session, one)

        assert jobs.run(act, "a").outcome is outcome
        jobs.close()


NO_KEY = [
    ((None,), "expected one"),
    (("",), "expected one"),
    ((1.5,), "expected one"),
    (("a\0b",), "expected one"),
    ((["a"],), "expected one"),
    (("x" * 600,), "at most 512 characters"),
    ((), "to fit"),
    (("a", "b", "c", "d"), "to fit"),
]


def test_a_job_without_a_key_is_invalid(jobs: KeyedJobs) -> None:
    """A message that another client published with arguments that make no key is dead as invalid."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    jobs.run(act, "first")  # starts the worker
    for args, complaint in NO_KEY:
        ended = jobs.wait_for(jobs.put(act.message(*args)))
        assert isinstance(ended.error, Invalid)
        assert complaint in str(ended.error)
        assert isinstance(ended.outcome, Dead)
        assert ended.outcome.kind == "invalid"
    assert entries(jobs.store) == ["first"]


def test_a_message_that_asks_for_another_job_is_invalid(jobs: KeyedJobs) -> None:
    """A late job with a pipe_target that another client published is dead as invalid: nothing ran."""
    act = late_actor(jobs)
    jobs.run(act, "first")
    message = act.message_with_options(args=("a",), pipe_target=act.message("b").asdict())
    ended = jobs.wait_for(jobs.put(message))
    assert isinstance(ended.error, Invalid)
    assert "pipe_target" in str(ended.error)
    assert entries(jobs.store) == ["first"]


def test_a_direct_call_outside_a_job_has_a_transaction_of_its_own(store: Store) -> None:
    """Calling a keyed actor as a function spends its key; a second call returns None and does nothing."""
    jobs = KeyedJobs(store, "def")

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> str:
        enter(session, one)
        return "done"

    assert act("a") == "done"
    assert act("a") is None
    with pytest.raises(KeyConflict):
        act("a", "other")
    assert rows(store.engine, "SELECT key, message_id FROM job_ledger") == [("enter:a", "direct")]
    assert entries(store) == ["a"]


def test_a_direct_call_from_an_actor_without_a_key_does_not_decide_its_outcome(jobs: KeyedJobs) -> None:
    """A plain actor that calls a keyed one, which finds its key spent, has completed and is no duplicate."""

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    def plain() -> None:
        act("a")

    async def plain_async() -> None:
        await act("a")

    caller = jobs.declare(plain if jobs.kind == "def" else plain_async, "caller")
    assert jobs.run(caller).outcome is COMPLETED
    assert jobs.run(caller).outcome is COMPLETED
    assert entries(jobs.store) == ["a"]
