"""A late confirmation never overwrites a newer attempt; it is stored, and settles what nobody knew."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from middleware import UnknownOutcome, current_key
from middleware.transport.outcome import COMPLETED, DUPLICATE, Snoozed

from ..journal import Journal
from .external_jobs import attempts, external_actor, lapse
from .keyed_jobs import Gate, KeyedJobs, enter, entries, keys, rows


def frozen_call(jobs: KeyedJobs, gate: Gate, journal: Journal, **options: Any) -> Any:
    """Declare an actor whose first call has succeeded when the gate holds it."""

    def call(key: str) -> None:
        journal.note(key)
        if len(journal.entries) == 1:
            gate.pass_through()

    return external_actor(jobs, call, write=enter, **options)


def test_a_late_confirmation_counts_if_nobody_asked_meanwhile(jobs: KeyedJobs) -> None:
    """A worker that was frozen after its call, and thaws before anybody noticed, confirms as usual."""
    gate, journal = Gate(), Journal()
    act = frozen_call(jobs, gate, journal)
    message = jobs.send(act, "a")
    gate.wait()
    lapse(jobs)
    gate.opened.set()
    assert jobs.wait_for(message).outcome is COMPLETED
    assert attempts(jobs.store) == [(1, "confirmed")]


def test_a_late_confirmation_resolves_a_parked_job(jobs: KeyedJobs) -> None:
    """Its job became a dead letter; then the worker thaws: its rows, its key and its confirmation stand."""
    gate, journal = Gate(), Journal()
    act = frozen_call(jobs, gate, journal)
    message = jobs.send(act, "a")
    gate.wait()
    lapse(jobs)
    assert isinstance(jobs.run(act, "a").error, UnknownOutcome)
    gate.opened.set()
    assert jobs.wait_for(message).outcome is COMPLETED
    assert (entries(jobs.store), keys(jobs.store)) == (["a"], ["pay:a"])
    assert attempts(jobs.store) == [(1, "confirmed")]
    assert jobs.run(act, "a").outcome is DUPLICATE  # as a replay of the dead letter ends
    assert journal.entries == ["pay:a"]


def test_a_late_confirmation_does_not_overwrite_one_that_was_made(jobs: KeyedJobs) -> None:
    """A newer attempt was confirmed meanwhile: its rows and result stay, the late one is only noted."""
    gate, journal = Gate(), Journal()

    def write(session: Session, one: str) -> None:
        enter(session, f"{one} {len(journal.entries)}")

    def call(key: str) -> None:
        journal.note(key)
        if len(journal.entries) == 1:
            gate.pass_through()

    act = external_actor(jobs, call, write=write, on_unknown="retry")
    first = jobs.send(act, "a")
    gate.wait()
    lapse(jobs)
    second = jobs.send(act, "a")
    assert jobs.wait_for(second).outcome is COMPLETED
    gate.opened.set()
    assert jobs.wait_for(first).outcome is DUPLICATE
    assert entries(jobs.store) == ["a 2"]
    assert attempts(jobs.store) == [(1, "confirmed"), (2, "confirmed")]
    assert rows(jobs.store.engine, "SELECT message_id FROM job_ledger") == [second.message_id]


def test_a_late_confirmation_does_not_overtake_a_call_under_way(jobs: KeyedJobs) -> None:
    """A newer attempt may be calling: the late one is noted, writes nothing; the newer one is confirmed."""
    gates, journal = (Gate(), Gate()), Journal()

    def write(session: Session, one: str) -> None:
        enter(session, one)

    def call(key: str) -> None:
        journal.note(key)
        gates[len(journal.entries) - 1].pass_through()

    act = external_actor(jobs, call, write=write, on_unknown="retry")
    first = jobs.send(act, "a")
    gates[0].wait()
    lapse(jobs)
    second = jobs.send(act, "a")
    gates[1].wait()
    gates[0].opened.set()
    assert jobs.wait_for(first).outcome is DUPLICATE
    assert (entries(jobs.store), keys(jobs.store)) == ([], [])
    assert attempts(jobs.store) == [(1, "confirmed"), (2, "held")]
    gates[1].opened.set()
    assert jobs.wait_for(second).outcome is COMPLETED
    assert (entries(jobs.store), keys(jobs.store)) == (["a"], ["pay:a"])
    assert attempts(jobs.store) == [(1, "confirmed"), (2, "confirmed")]


def test_a_late_confirmation_settles_a_newer_attempt_that_fails(jobs: KeyedJobs) -> None:
    """The newer attempt ends unknown, but the earlier one is known to have taken effect: nobody is asked."""
    gates, journal = (Gate(), Gate()), Journal()

    def call(key: str) -> None:
        journal.note(key)
        number = len(journal.entries)
        gates[number - 1].pass_through()
        if number == 2:
            raise TimeoutError("no answer")

    act = external_actor(jobs, call, on_unknown="retry")
    first = jobs.send(act, "a")
    gates[0].wait()
    lapse(jobs)
    second = jobs.send(act, "a")
    gates[1].wait()
    gates[0].opened.set()
    assert jobs.wait_for(first).outcome is DUPLICATE
    gates[1].opened.set()
    assert isinstance(jobs.wait_for(second).error, TimeoutError)
    assert jobs.run(act, "a").outcome is DUPLICATE
    assert (len(journal.entries), keys(jobs.store)) == (2, ["pay:a"])


def test_a_newer_attempt_before_its_call_gives_way(jobs: KeyedJobs) -> None:
    """A late confirmation that comes before the newer attempt asks for its key makes its call needless."""
    gates, journal = (Gate(), Gate()), Journal()

    def before(one: str) -> None:
        journal.note("before")
        if journal.entries.count("before") == 2:
            gates[1].pass_through()

    def call(key: str) -> None:
        journal.note("called")
        gates[0].pass_through()

    act = external_actor(jobs, call, before=before, write=enter, on_unknown="retry")
    first = jobs.send(act, "a")
    gates[0].wait()
    lapse(jobs)
    second = jobs.send(act, "a")
    gates[1].wait()
    gates[0].opened.set()
    assert jobs.wait_for(first).outcome is COMPLETED
    gates[1].opened.set()
    assert isinstance(jobs.wait_for(second).outcome, Snoozed)
    assert jobs.wait_for(second, 2).outcome is DUPLICATE
    assert journal.entries.count("called") == 1
    assert (entries(jobs.store), attempts(jobs.store)) == (["a"], [(1, "confirmed"), (2, "released")])


def ask_for_key() -> str:
    """Ask on an actor's behalf, so that its own code does not name the function."""
    return current_key()


def test_a_newer_attempt_finds_a_stored_confirmation_when_it_asks(store: Any) -> None:
    """Nobody knew whether it had called, so it was not overtaken; when it comes to ask, it need not call."""
    jobs, gates, journal = KeyedJobs(store, "def"), (Gate(), Gate()), Journal()

    def act(one: str) -> None:
        journal.note("began")
        if journal.entries.count("began") == 2:
            gates[1].pass_through()
        ask_for_key()
        journal.note("called")
        gates[0].pass_through()

    options: dict[str, Any] = {"idempotency_key": "pay:{one}", "effect": "external", "on_unknown": "retry"}
    actor = jobs.declare(act, "act", **options)
    first = jobs.send(actor, "a")
    gates[0].wait()
    lapse(jobs)
    second = jobs.send(actor, "a")
    gates[1].wait()
    gates[0].opened.set()
    assert jobs.wait_for(first).outcome is DUPLICATE
    assert (keys(store), attempts(store)) == ([], [(1, "confirmed"), (2, "held")])
    gates[1].opened.set()
    assert isinstance(jobs.wait_for(second).outcome, Snoozed)
    assert jobs.wait_for(second, 2).outcome is DUPLICATE
    assert journal.entries == ["began", "called", "began"]
    assert keys(store) == ["pay:a"]
    jobs.close()
