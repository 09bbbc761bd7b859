"""The crash-point kit lets a worker die at every step of a job, and asserts that its effect is there once."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

import pytest
from dramatiq import Actor
from dramatiq.middleware import Callbacks
from sqlalchemy import text
from sqlalchemy.orm import Session

from middleware import Invalid, Reconciled
from middleware.transport.outcome import COMPLETED, DUPLICATE

from ..journal import Journal
from ..waiting import wait_until
from .crash_jobs import DEF, POSTGRESQL, SQLITE, check, refusal
from .external_jobs import external_actor
from .keyed_jobs import KeyedJobs, enter, keys
from .late_jobs import late_actor


def writer(hasty_jobs: KeyedJobs) -> Actor[..., Any]:
    """Declare an actor that writes an entry in two statements."""

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        session.execute(text("SELECT count(*) FROM credit_entries"))
        enter(session, one)

    return act


def test_every_step_is_a_crash_point(hasty_jobs: KeyedJobs) -> None:
    """The INSERT of the key, each statement, the COMMIT and the acknowledgement: before and after each.

    Beside crashes: a second delivery, two at a time, frozen workers that come back, attempts that fail.
    """
    tried = check(writer(hasty_jobs))
    crashes = [words for words in tried if words.startswith("a crash ")]
    assert crashes == [
        "a crash before the INSERT of the key",
        "a crash after the INSERT of the key, before statement 1 (SELECT count(*) FROM credit_entries)",
        "a crash before statement 1 (SELECT count(*) FROM credit_entries)",
        "a crash after statement 1 (SELECT count(*) FROM credit_entries), before statement 2 (INSERT INTO "
        "credit_entries (reference,…)",
        "a crash before statement 2 (INSERT INTO credit_entries (reference,…)",
        "a crash after statement 2 (INSERT INTO credit_entries (reference,…), before COMMIT",
        "a crash before COMMIT",
        "a crash after COMMIT, before the acknowledgement",
        "a crash before the acknowledgement",
        "a crash after the acknowledgement",
    ]
    others = [words for words in tried if words not in crashes]
    assert others[:2] == [
        "a run in which nothing goes wrong",
        "a second delivery after the first has ended",
    ]
    assert others[2:5] == [
        "a failed attempt and a crash before its retry is published",
        "a failed attempt and a crash before the confirm of its retry",
        "a failed attempt and a crash after the confirm of its retry, before the acknowledgement",
    ]
    froze = "a worker that froze before COMMIT, and came back"
    expected = {froze, f"{froze} after a long time"}
    if not hasty_jobs.store.is_sqlite:
        expected.add(f"{froze} when the database had ended its transaction")
    assert {words for words in others if "before COMMIT, and came back" in words} >= expected
    assert "two deliveries at the same time, one of them held before COMMIT" in others


@DEF
@SQLITE
def test_the_application_is_as_before(hasty_jobs: KeyedJobs) -> None:
    """After a check the broker has its own middleware, the ledger its own terms, and jobs run as ever."""
    act = writer(hasty_jobs)

    def runs(argument: str) -> bool:
        # Put off while the relay has SQLite's turn; then the copy that was put off may be the one that runs.
        return hasty_jobs.run(act, argument).outcome in {COMPLETED, DUPLICATE}

    wait_until(lambda: runs("b"), what="a job to run before the check")
    before = list(hasty_jobs.broker.middleware), hasty_jobs.ledger._leases.intents.lease
    check(act)
    assert (list(hasty_jobs.broker.middleware), hasty_jobs.ledger._leases.intents.lease) == before
    assert not {"open", "commit"} & vars(hasty_jobs.ledger._database).keys()
    assert keys(hasty_jobs.store) == ["enter:a", "enter:b"]
    wait_until(lambda: runs("c"), what="a job to run after it")
    assert keys(hasty_jobs.store) == ["enter:a", "enter:b", "enter:c"]


@DEF
def test_an_actor_without_key_or_idempotence_is_found(hasty_jobs: KeyedJobs) -> None:
    """What it writes is there twice after a crash that follows its commit; the report says so."""

    def act(one: str) -> None:
        with hasty_jobs.store.engine.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO credit_entries (reference, account_id, amount) "
                    "SELECT count(*) || 'a', 'a', 1 FROM credit_entries"
                )
            )

    found = refusal(hasty_jobs.declare(act, "act"))
    assert "after a crash after COMMIT, before the acknowledgement: effect took place 2 times" in found
    assert "after a second delivery after the first has ended: effect took place 2 times" in found
    assert "before COMMIT: effect" not in found.replace("froze before COMMIT", "").replace(
        "held before COMMIT", ""
    )


@DEF
@POSTGRESQL
def test_an_actor_that_looks_before_it_writes_is_found(hasty_jobs: KeyedJobs) -> None:
    """No crash and no second delivery shows what two workers at a time do."""
    seen = text("SELECT count(*) FROM credit_entries WHERE account_id = 'a'")

    def act(one: str) -> None:
        with Session(hasty_jobs.store.engine) as session, session.begin():
            if not session.scalars(seen).one():
                enter(session, uuid.uuid4().hex)

    found = refusal(hasty_jobs.declare(act, "act", idempotent="looks first"))
    for where in ("before statement 2 (INSERT INTO credit_entries (reference,…)", "before COMMIT"):
        assert f"after a worker that froze {where}, and came back: effect took place 2 times" in found
    assert "after a crash" not in found
    assert "after a second delivery" not in found


@DEF
@SQLITE
def test_what_follows_a_job(hasty_jobs: KeyedJobs) -> None:
    """Where an actor without a key has a callback, its publish and confirm are crash points as well."""
    hasty_jobs.broker.add_middleware(Callbacks())
    hasty_jobs.declare(lambda message, result: None, "note")

    def act(one: str) -> None:
        with hasty_jobs.store.writing() as connection:
            connection.execute(
                text(
                    "INSERT INTO credit_entries (reference, account_id, amount) "
                    "VALUES ('a', 'a', 1) ON CONFLICT DO NOTHING"
                )
            )

    tried = check(hasty_jobs.declare(act, "act", idempotent="upsert by primary key", on_success="note"))
    assert [
        words for words in tried if "what follows it" in words and words.startswith("a crash before")
    ] == [
        "a crash before the publish of what follows it",
        "a crash before the confirm of what follows it",
    ]


@DEF
@SQLITE
def test_an_idempotent_actor_needs_no_key(hasty_jobs: KeyedJobs) -> None:
    """An upsert may run as often as it likes."""

    def act(one: str) -> None:
        with hasty_jobs.store.writing() as connection:
            connection.execute(
                text(
                    "INSERT INTO credit_entries (reference, account_id, amount) "
                    "VALUES ('a', 'a', 1) ON CONFLICT DO NOTHING"
                )
            )

    assert len(check(hasty_jobs.declare(act, "act", idempotent="upsert by primary key"))) > 10


@DEF
@SQLITE
def test_an_actor_that_caches(hasty_jobs: KeyedJobs) -> None:
    """What only the first run of a process does is no step of the others."""
    cache: list[int] = []

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        if not cache:
            cache.append(session.scalars(text("SELECT 1")).one())
        enter(session, one)

    assert "a crash before statement 1 (INSERT INTO credit_entries (reference,…)" in check(act)


@DEF
def test_a_dead_worker_does_nothing_more(hasty_jobs: KeyedJobs) -> None:
    """Not even if the actor swallows what unwinds it: its commit is as dead as its worker."""

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        with suppress(BaseException):
            enter(session, one)

    check(act)


def test_late_actors(hasty_jobs: KeyedJobs) -> None:
    """A late actor's computation may be cut or repeated, its effect is there once."""
    tried = check(late_actor(hasty_jobs))
    assert "a crash after COMMIT, before the acknowledgement" in tried


@DEF
@SQLITE
def test_a_job_that_fails_by_itself(hasty_jobs: KeyedJobs) -> None:
    """The kit says so, with the actor's own error, before it lets anything go wrong."""

    @hasty_jobs.actor("enter:{one}")
    def act(session: Session, one: str, two: str, three: str) -> None:
        raise Invalid("no such account")

    found = refusal(act)
    assert found.startswith(
        "expected act('a') to take effect once when nothing goes wrong, got: the job became a"
    )
    assert "dead (Invalid: no such account)" in found


@DEF
@SQLITE
def test_what_prepare_forgot(hasty_jobs: KeyedJobs) -> None:
    """Rows that are left from the run before make the next one fail, and the report shows how."""
    found = refusal(writer(hasty_jobs), prepare=None)
    assert "when nothing goes wrong, for the second time, got: the job became a dead letter" in found
    assert "let prepare= write the rows that it needs and take away what it writes" in found
    assert "IntegrityError" in found


@DEF
@SQLITE
@pytest.mark.parametrize("count", [None, "1", True, [1]], ids=repr)
def test_an_effect_that_is_no_number(hasty_jobs: KeyedJobs, count: Any) -> None:
    """`effect=` returns a number, or the kit says what to write."""
    with pytest.raises(TypeError, match="expected effect= to return how often"):
        check(writer(hasty_jobs), effect=lambda session: count)


# --- effects outside the database ---


def provider_actor(hasty_jobs: KeyedJobs, **options: Any) -> tuple[Actor[..., Any], Journal]:
    """Declare an actor that calls a provider, which notes the calls."""
    calls = Journal()
    return external_actor(hasty_jobs, calls.note, **options), calls


@pytest.mark.slow
def test_an_external_effect_without_reconcile_is_never_repeated(hasty_jobs: KeyedJobs) -> None:
    """It takes place once, or the job is a dead letter of kind unknown_outcome: then at most once."""
    act, calls = provider_actor(hasty_jobs)
    tried = check(act, effect=lambda session: len(calls.entries), prepare=None)
    assert "a crash after COMMIT 2, before the INSERT of the key" in tried
    kinds = {letter.headers["jobs-kind"] for letter in hasty_jobs.broker.dead_letters("jobs")}
    assert kinds == {"unknown_outcome"}


@pytest.mark.slow
def test_an_external_effect_with_reconcile_takes_place(hasty_jobs: KeyedJobs) -> None:
    """The provider is asked about each attempt that was cut: one effect, and no dead letter."""
    charged: set[str] = set()

    def ask(key: str) -> Reconciled:
        return Reconciled.DONE if key in charged else Reconciled.NOT_DONE

    act = external_actor(hasty_jobs, charged.add, reconcile=ask)
    check(act, effect=lambda session: len(charged), prepare=lambda session: charged.clear())
    assert hasty_jobs.broker.dead_letters("jobs") == []


@DEF
@SQLITE
@pytest.mark.slow
def test_an_external_effect_that_is_called_again_blindly(hasty_jobs: KeyedJobs) -> None:
    """`on_unknown="retry"` without a provider that knows the key: found."""
    act, calls = provider_actor(hasty_jobs, on_unknown="retry")
    found = refusal(act, effect=lambda session: len(calls.entries), prepare=None)
    assert "before the INSERT of the key: effect took place 2 times" in found
