"""A ledger that is broken on purpose is found by the crash-point kit, at the point where it matters."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import text
from sqlalchemy.orm import Session

from .crash_jobs import DEF, SQLITE, check, refusal
from .keyed_jobs import KeyedJobs, enter
from .ledger_mutants import (
    acknowledging_before_the_retry,
    acknowledging_first,
    with_key_first,
    with_two_commits,
    without_key,
)

AFTER_COMMIT = "after a crash after COMMIT, before the acknowledgement"


def found(hasty_jobs: KeyedJobs, mutant: Callable[[KeyedJobs], None]) -> str:
    """Return what the kit finds of a mutant, with an actor that may enter as often as it likes."""
    mutant(hasty_jobs)

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        count = session.scalars(text("SELECT count(*) FROM credit_entries")).one()
        enter(session, f"{one}{count}")

    return refusal(act)


def test_no_key(hasty_jobs: KeyedJobs) -> None:
    """Without a key in the commit each delivery has its effect."""
    report = found(hasty_jobs, without_key)
    assert f"{AFTER_COMMIT}: effect took place 2 times; deliveries: crashed, completed" in report
    assert "after a second delivery after the first has ended: effect took place 2 times" in report


@DEF
def test_two_commits(hasty_jobs: KeyedJobs) -> None:
    """A key that is committed after its effect is found by a crash in between, and by no second delivery."""
    report = found(hasty_jobs, with_two_commits)
    assert f"{AFTER_COMMIT}" in report or "after a crash after COMMIT, before statement" in report
    assert "a second delivery after the first has ended" not in report


@DEF
def test_key_first(hasty_jobs: KeyedJobs) -> None:
    """A key that is committed before its effect makes the effect impossible after a crash in between."""
    report = found(hasty_jobs, with_key_first)
    assert "effect took place 0 times; deliveries: crashed, duplicate" in report
    assert "a second delivery after the first has ended" not in report


@DEF
@SQLITE
def test_acknowledge_first(hasty_jobs: KeyedJobs) -> None:
    """A job that is acknowledged before its commit is lost with its worker."""
    report = found(hasty_jobs, acknowledging_first)
    assert "after a crash before COMMIT: effect took place 0 times; deliveries: crashed" in report
    assert AFTER_COMMIT not in report


@DEF
@SQLITE
def test_acknowledge_before_the_retry(hasty_jobs: KeyedJobs) -> None:
    """A failed job that is acknowledged before its retry is stored is lost with its worker."""
    report = found(hasty_jobs, acknowledging_before_the_retry)
    assert (
        "after a failed attempt and a crash before its retry is published: effect took place 0 times"
        in report
    )
    assert "1 of" in report


@DEF
def test_the_ledger_itself(hasty_jobs: KeyedJobs) -> None:
    """The same actor on the ledger as it is passes."""

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        count = session.scalars(text("SELECT count(*) FROM credit_entries")).one()
        enter(session, f"{one}{count}")

    check(act)
