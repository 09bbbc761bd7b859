"""Does a job that a listener of the session's events sends share the fate of the effect?"""

from __future__ import annotations

from typing import Any

import pytest
from dramatiq import Actor
from sqlalchemy import event
from sqlalchemy.orm import Session

from jobs.models import CreditEntry
from middleware.transport.outcome import COMPLETED, Dead

from .keyed_jobs import entries
from .late_jobs import late_actor
from .sending_jobs import SendingJobs

BEFORE_THE_COMMIT = ["before_flush", "after_flush", "before_commit"]


def listening_actor(sending: SendingJobs, effect: str, name: str, *, fails: bool = False) -> Actor[..., Any]:
    """Declare an actor of whose session an event sends a job, and a later one fails if it is to."""

    def write(session: Session, one: str, *_: Any) -> None:
        session.add(CreditEntry(reference=one, account_id="a", amount=1))
        event.listen(session, name, lambda *_: sending.note.send(one), once=True)
        if fails:
            event.listen(session, "before_commit", fail)

    if effect == "late":
        return late_actor(sending, lambda one: one, write=write)
    return sending.actor("enter:{one}")(write)


def fail(_session: Session) -> None:
    raise RuntimeError("fails")


@pytest.mark.parametrize("name", BEFORE_THE_COMMIT)
@pytest.mark.parametrize("effect", ["database", "late"])
def test_a_send_before_the_commit_is_part_of_it(sending: SendingJobs, effect: str, name: str) -> None:
    """An event of the last flush, or of the commit itself, sends: the job runs once."""
    act = listening_actor(sending, effect, name)
    assert sending.run(act, "a").outcome == COMPLETED
    sending.wait_until_done()
    assert (sending.journal.entries, entries(sending.store)) == ([("a",)], ["a"])


@pytest.mark.parametrize("name", BEFORE_THE_COMMIT)
@pytest.mark.parametrize("effect", ["database", "late"])
def test_a_send_before_a_commit_that_fails_sends_nothing(
    sending: SendingJobs, effect: str, name: str
) -> None:
    """What such an event sent goes with the commit."""
    act = listening_actor(sending, effect, name, fails=True)
    assert isinstance(sending.run(act, "a").outcome, Dead)
    sending.wait_until_done()
    assert (sending.journal.entries, entries(sending.store)) == ([], [])


@pytest.mark.parametrize("effect", ["database", "late"])
def test_a_send_after_the_commit_is_sent_at_once(sending: SendingJobs, effect: str) -> None:
    """There is no transaction any more that it could join, and the effect has taken place."""
    act = listening_actor(sending, effect, "after_commit")
    assert sending.run(act, "a").outcome == COMPLETED
    sending.wait_until_done()
    assert (sending.journal.entries, entries(sending.store)) == ([("a",)], ["a"])
