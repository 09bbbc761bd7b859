from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import dramatiq
import pytest

from jobs.demo.audit import audit
from jobs.demo.books import Books
from jobs.demo.evidence import Letter, Observed
from jobs.demo.workload import Workload
from middleware.transport.delivery import Delivery
from middleware.transport.evidence import Evidence
from middleware.transport.memory import Memory, MemoryLink
from middleware.transport.outcome import COMPLETED, RETURNED, Dead, Outcome, Retry, Snoozed

WORKLOAD = Workload(
    accounts=1, usages=2, twice=1, unpaid=1, unknown=1, prompts={"steady": 1, "flaky": 1, "refused": 1}
)


def letter(job: str, kind: str) -> Letter:
    queue = "critical" if job.startswith("charge") else "llm"
    return Letter(queue, job, kind, "why", 1, ({"attempt": 1},))


BEFORE = Books(
    balances={"a": 10, "b": 0},
    usages={"chat:m1": ("a", 2), "chat:m2": ("a", 3), "unpaid:m1": ("b", 2)},
    entries=(),
    ledger=Counter(),
)


@dataclass(frozen=True)
class Run:
    """What a run left behind; the defaults are a run whose books balance."""

    balances: tuple[int, int] = (5, 0)
    entries: tuple[tuple[str, str, int], ...] = (("chat:m1", "a", 2), ("chat:m2", "a", 3))
    ledger: tuple[str, ...] = ("credit:chat:m1", "credit:chat:m2")
    letters: tuple[Letter, ...] = (
        letter("charge_credit unpaid:m1", "rejected"),
        letter("charge_credit unknown:m1", "invalid"),
        letter("ask_provider refused-1", "invalid"),
    )
    answered: int = 1
    ended: int = 8
    left: int = 0
    duplicates: int = 1
    retries: int = 2

    def differences(self) -> dict[str, tuple[str, ...]]:
        """Return the facts that do not hold, with what speaks against them."""
        after = replace(
            BEFORE,
            balances=dict(zip("ab", self.balances, strict=True)),
            entries=self.entries,
            ledger=Counter(self.ledger),
        )
        tally = {"steady-1": {200: self.answered}, "flaky-1": {500: 1, 503: 1, 200: 1}, "refused-1": {422: 1}}
        observed = Observed(
            self.ended,
            Counter(duplicate=self.duplicates),
            Counter({("llm", "transient", "x"): self.retries}),
            {"llm": self.left},
        )
        checks = audit(WORKLOAD, BEFORE, after, self.letters, tally, observed)
        return {check.fact: check.differences for check in checks if check.differences}


def test_books_that_balance_have_no_differences() -> None:
    """What was submitted agrees with tables, dead letters and the provider's tally."""
    assert Run().differences() == {}


@pytest.mark.parametrize(
    ("spoilt", "fact", "difference"),
    [
        ({"ended": 7}, "every job ended", "jobs ended: expected 8, found 7"),
        ({"left": 1}, "every job ended", "jobs left in llm: expected 0, found 1"),
        ({"entries": (("chat:m1", "a", 2),)}, "each usage", "entries of chat:m2: expected 1, found 0"),
        (
            {"entries": (*Run.entries, ("chat:x", "a", 1))},
            "each usage",
            "entries of chat:x: expected 0, found 1",
        ),
        (
            {"entries": (("chat:m1", "a", 1), ("chat:m2", "a", 3))},
            "each usage",
            "entry chat:m1: expected ('a', 2), found ('a', 1)",
        ),
        ({"ledger": Run.ledger[:1]}, "every charge", "ledger rows of credit:chat:m2: expected 1, found 0"),
        (
            {"ledger": (*Run.ledger, "credit:unpaid:m1")},
            "every charge",
            "ledger rows of credit:unpaid:m1: expected 0, found 1",
        ),
        ({"balances": (3, 0)}, "every account", "balance of a: expected 5, found 3"),
        ({"duplicates": 0}, "every second", "duplicates: expected 1, found 0"),
        (
            {"letters": Run.letters[1:]},
            "exactly the hopeless",
            "dead letters of charge_credit unpaid:m1 (rejected): expected 1, found 0",
        ),
        (
            {"letters": (*Run.letters, letter("ask_provider steady-1", "transient"))},
            "exactly the hopeless",
            "dead letters of ask_provider steady-1 (transient): expected 0, found 1",
        ),
        (
            {"letters": (*Run.letters[:2], replace(Run.letters[2], history=()))},
            "exactly the hopeless",
            "the dead letter of ask_provider refused-1 lacks evidence",
        ),
        ({"answered": 2}, "the provider", "answers to steady-1: expected 1, found 2"),
        ({"retries": 1}, "each failure", "failures of the provider: expected 3, found 2"),
    ],
)
def test_each_difference_is_found(spoilt: dict[str, Any], fact: str, difference: str) -> None:
    """Whatever does not agree is listed under the fact that it contradicts."""
    found = Run(**spoilt).differences()
    lines = next(lines for name, lines in found.items() if name.startswith(fact))
    assert any(line.startswith(difference) for line in lines), lines


def test_many_differences_are_cut_short() -> None:
    """A broken run lists a few differences of each fact and counts the rest."""
    workload = replace(WORKLOAD, usages=20, twice=0)
    usages = {f"chat:m{number}": ("a", 1) for number in range(1, 21)}
    books = Books({"a": 10}, usages, (), Counter())
    check = audit(workload, books, books, [], {}, Observed())[1]
    assert len(check.differences) == 6
    assert check.differences[-1] == "… and 15 more"


@pytest.mark.parametrize(
    ("outcome", "ended"),
    [
        (COMPLETED, 1),
        (Dead("invalid", None), 1),
        (RETURNED, 0),
        (Snoozed(timedelta(seconds=1)), 0),
        (Retry("transient", OSError("gone"), timedelta(seconds=1)), 0),
    ],
)
def test_a_job_has_ended_when_it_left_the_system(outcome: Outcome, ended: int) -> None:
    """A retry, a snooze and a return leave the job where it is; everything else ends it."""
    message: dramatiq.Message[Any] = dramatiq.Message(
        queue_name="llm", actor_name="a", args=(), kwargs={}, options={}
    )
    link = MemoryLink(Memory(), "llm")
    delivery = Delivery(message, link=link, tag=1, body=b"", evidence=Evidence.from_headers({}))
    observed = Observed()
    observed.note(delivery, outcome)
    assert observed.ended == ended
    assert observed.endings == {outcome.name: 1}
