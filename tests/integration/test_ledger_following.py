"""Does what follows a keyed job, a next step or a callback, share the fate of its effect?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dramatiq
import pytest
from dramatiq import Actor, Message
from dramatiq.rate_limits import Barrier
from sqlalchemy.orm import Session

from jobs.models import CreditEntry
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from .keyed_jobs import enter, entries, keys
from .outbox_jobs import statements
from .sending_jobs import SendingJobs


def _pipe(jobs: SendingJobs, act: Actor[..., Any]) -> None:
    dramatiq.pipeline([act.message("a"), jobs.note.message()], broker=jobs.broker).run()


def _call_back(jobs: SendingJobs, act: Actor[..., Any]) -> None:
    act.send_with_options(args=("a",), on_success="note")


def _run_group(jobs: SendingJobs, act: Actor[..., Any]) -> None:
    group = dramatiq.group([act.message("a"), act.message("b")], broker=jobs.broker)
    group.add_completion_callback(jobs.note.message("whole"))
    group.run()


@pytest.mark.parametrize(
    ("send", "last_fact"),
    [(_pipe, 42), (_call_back, 42), (_run_group, "whole")],
    ids=["pipe", "callback", "group"],
)
def test_what_follows_a_keyed_job_is_in_its_commit(
    sending: SendingJobs, send: Callable[[SendingJobs, Actor[..., Any]], None], last_fact: Any
) -> None:
    """The next step with its argument, a callback, and a group's completion follow once, from the outbox."""
    written = statements(sending.store.engine)

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> int:
        enter(session, one)
        return 42

    send(sending, act)
    (facts,) = sending.journal.wait_for(1)
    assert facts[-1] == last_fact
    sending.wait_until_done()
    assert len(sending.journal.entries) == 1
    if sending.kind == "def":
        assert any("INSERT INTO job_outbox" in statement for statement in written)


def test_nothing_follows_a_job_whose_commit_fails(sending: SendingJobs) -> None:
    """What follows is written before the commit: if that fails, nothing follows and nothing is there."""

    @sending.actor("enter:{one}", on_success="note")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        enter(session, one)  # refused: there can be one

    assert isinstance(sending.run(act, "a").outcome, Dead)
    sending.wait_until_done()
    assert (sending.journal.entries, entries(sending.store)) == ([], [])


def test_a_result_that_cannot_travel_takes_the_effect_along(sending: SendingJobs) -> None:
    """A job whose next step cannot be sent is dead, and its effect did not take place."""

    @sending.actor("enter:{one}", on_success="note")
    def act(session: Session, one: str, *_: Any) -> object:
        enter(session, one)
        return object()

    ended = sending.run(act, "a")
    assert isinstance(ended.outcome, Dead)
    assert ended.outcome.kind == "invalid"
    sending.wait_until_done()
    assert (sending.journal.entries, entries(sending.store), keys(sending.store)) == ([], [], [])


def test_a_failure_calls_back_without_a_commit(sending: SendingJobs) -> None:
    """`on_failure` belongs to the outcome that has no commit: it is published before the acknowledgement."""

    @sending.actor("enter:{one}", on_failure="note", on_success="note")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        raise RuntimeError("fails")

    assert isinstance(sending.run(act, "a").outcome, Dead)
    ((_, error),) = sending.journal.wait_for(1)
    assert error == {"type": "RuntimeError", "message": "fails"}
    sending.wait_until_done()
    assert len(sending.journal.entries) == 1


def _group(jobs: SendingJobs, act: Actor[..., Any]) -> list[Message[Any]]:
    """Return the messages of a group whose completion is noted, as `group.run()` sends them."""
    Barrier(jobs.barriers, "group", ttl=60_000).create(3)
    callbacks = [jobs.note.message("whole").asdict()]
    options: dict[str, Any] = {
        "group_completion_uuid": "group",
        "group_completion_callbacks": callbacks,
    }
    return [act.message_with_options(args=(name,), **options) for name in ("a", "b", "c")]


def test_a_duplicate_does_not_count_for_its_group(sending: SendingJobs) -> None:
    """A group of three whose first job is delivered twice is complete with its third job, not before."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    first, second, third = _group(sending, act)
    sending.broker.enqueue(first)
    sending.wait_for(first)
    sending.put(first)
    assert sending.wait_for(first, deliveries=2).outcome == DUPLICATE
    sending.broker.enqueue(second)
    sending.wait_for(second)
    sending.wait_until_done()
    assert sending.journal.entries == []
    sending.broker.enqueue(third)
    assert sending.journal.wait_for(1) == [("whole",)]


def test_a_job_that_cannot_be_committed_does_not_count_for_its_group(sending: SendingJobs) -> None:
    """A job whose last flush fails has not completed, and the group is not complete without it."""

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        twice = ["same", "same"] if one == "a" else [one]
        session.add_all(CreditEntry(reference=each, account_id="a", amount=1) for each in twice)

    first, *others = _group(sending, act)
    sending.broker.enqueue(first)
    assert isinstance(sending.wait_for(first).outcome, Dead)
    for message in others:
        sending.broker.enqueue(message)
        assert sending.wait_for(message).outcome == COMPLETED
    sending.wait_until_done()
    assert sending.journal.entries == []
