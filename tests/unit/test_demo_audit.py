"""Does the demonstration's audit see each way in which the books may be wrong?"""

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
from jobs.demo.findings import Check, Findings
from jobs.demo.mail_server import Answered
from jobs.demo.workload import Workload
from middleware.transport.delivery import Delivery
from middleware.transport.evidence import Evidence
from middleware.transport.memory import Memory, MemoryLink
from middleware.transport.outcome import COMPLETED, RETURNED, Dead, Outcome, Retry, Snoozed

WORKLOAD = Workload(
    accounts=1,
    usages=2,
    twice=1,
    unpaid=1,
    unknown=1,
    emails={"steady": 1, "greylisted": 1, "unknown": 1},
    emails_twice=1,
    chats={"steady": 1, "flaky": 1, "refused": 1},
    resources=1,
    resources_twice=0,
)
JOBS = 15


def letter(job: str, kind: str) -> Letter:
    """Return a dead letter with its evidence, in its actor's queue."""
    queue = "llm" if job.startswith("summarize") else "critical"
    return Letter(queue, job, kind, "why", 1, ({"attempt": 1},))


BEFORE = Books(
    balances={"a": 10, "b": 0},
    usages={"chat:m1": ("a", 2), "chat:m2": ("a", 3), "unpaid:m1": ("b", 2)},
    entries=(),
    ledger=Counter(),
    messages={"steady-1": 2, "flaky-1": 3, "refused-1": 4},
)


@dataclass(frozen=True)
class Run:
    """What a run left behind; the defaults are a run whose books balance."""

    balances: tuple[int, int] = (5, 0)
    entries: tuple[tuple[str, str, int], ...] = (("chat:m1", "a", 2), ("chat:m2", "a", 3))
    ledger: tuple[str, ...] = (
        "credit:chat:m1",
        "credit:chat:m2",
        "email:steady-1:receipt:order-steady-1",
        "email:greylisted-1:receipt:order-greylisted-1",
        "summary:steady-1:2",
        "summary:flaky-1:3",
        "resource:resource-1:v1",
        "resource:resource-1:v2",
        "resource:resource-1:v3",
    )
    letters: tuple[Letter, ...] = (
        letter("charge_credit unpaid:m1", "rejected"),
        letter("charge_credit unknown:m1", "invalid"),
        letter("send_email unknown-1:receipt:order-unknown-1", "invalid"),
        letter("summarize_chat refused-1:4", "invalid"),
    )
    summaries: tuple[tuple[str, int, str], ...] = (
        ("steady-1", 2, "steady-1 has 2 messages"),
        ("flaky-1", 3, "flaky-1 has 3 messages"),
    )
    found: tuple[tuple[str, int], ...] = (("resource-1", 3),)
    stale: tuple[tuple[str, int], ...] = ()
    mail: tuple[Answered, ...] = (
        Answered("steady-1", 250, "<1>"),
        Answered("greylisted-1", 451),
        Answered("greylisted-1", 250, "<2>"),
        Answered("unknown-1", 550),
    )
    answered: int = 1
    ended: int = JOBS
    left: int = 0
    duplicates: int = 1
    resent: int = 1
    retries: int = 2
    resends: int = 1

    def findings(self) -> Findings:
        """Return what an audit gets to see of it."""
        after = replace(
            BEFORE,
            balances=dict(zip("ab", self.balances, strict=True)),
            entries=self.entries,
            ledger=Counter(self.ledger),
            summaries={chat: (up_to, text) for chat, up_to, text in self.summaries},
            found={
                "resource1edition1": list(self.stale),
                "resource1edition2": [],
                "resource1edition3": list(self.found),
            },
        )
        answers = {
            "steady-1": {200: self.answered},
            "flaky-1": {500: 1, 503: 1, 200: 1},
            "refused-1": {422: 1},
        }
        observed = Observed(
            self.ended,
            Counter(
                {("charge_credit", "duplicate"): self.duplicates, ("send_email", "duplicate"): self.resent}
            ),
            Counter({("llm", "transient", "x"): self.retries, ("critical", "transient", "y"): self.resends}),
            {"llm": self.left},
        )
        return Findings(WORKLOAD, BEFORE, after, self.letters, answers, self.mail, observed)

    def differences(self) -> dict[str, tuple[str, ...]]:
        """Return the facts that do not hold, with what speaks against them."""
        return {check.fact: check.differences for check in audit(self.findings()) if check.differences}


def test_books_that_balance_have_no_differences() -> None:
    """What was submitted agrees with tables, dead letters, the mail server's journal and the API's tally."""
    assert WORKLOAD.size() == JOBS
    assert Run().differences() == {}


@pytest.mark.parametrize(
    ("spoilt", "fact", "difference"),
    [
        ({"ended": 7}, "every job ended", "jobs ended: expected 15, found 7"),
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
        (
            {"ledger": (Run.ledger[0], *Run.ledger[2:])},
            "every effect",
            "ledger rows of credit:chat:m2: expected 1, found 0",
        ),
        (
            {"ledger": (*Run.ledger, "credit:unpaid:m1")},
            "every effect",
            "ledger rows of credit:unpaid:m1: expected 0, found 1",
        ),
        (
            {"ledger": (*Run.ledger[:2], *Run.ledger[3:])},
            "every effect",
            "ledger rows of email:steady-1:receipt:order-steady-1: expected 1, found 0",
        ),
        (
            {"ledger": Run.ledger[:-1]},
            "every effect",
            "ledger rows of resource:resource-1:v3: expected 1, found 0",
        ),
        ({"balances": (3, 0)}, "every account", "balance of a: expected 5, found 3"),
        ({"duplicates": 0}, "every second", "duplicates of charge_credit: expected 1, found 0"),
        ({"resent": 2}, "every second", "duplicates of send_email: expected 1, found 2"),
        (
            {"letters": Run.letters[1:]},
            "exactly the hopeless",
            "dead letters of charge_credit unpaid:m1 (rejected): expected 1, found 0",
        ),
        (
            {"letters": (*Run.letters, letter("summarize_chat steady-1:2", "transient"))},
            "exactly the hopeless",
            "dead letters of summarize_chat steady-1:2 (transient): expected 0, found 1",
        ),
        (
            {"letters": (*Run.letters[:3], replace(Run.letters[3], history=()))},
            "exactly the hopeless",
            "the dead letter of summarize_chat refused-1:4 lacks evidence",
        ),
        ({"mail": Run.mail[1:]}, "the mail server", "emails to steady-1: expected 1, found 0"),
        ({"mail": (*Run.mail, Run.mail[0])}, "the mail server", "emails to steady-1: expected 1, found 2"),
        (
            {"mail": (*Run.mail, Answered("unknown-1", 250, "<3>"))},
            "the mail server",
            "emails to unknown-1: expected 0, found 1",
        ),
        (
            {"mail": (replace(Run.mail[0], message_id="<2>"), *Run.mail[1:])},
            "the mail server",
            "Message-IDs: expected 2, found 1",
        ),
        ({"resends": 0}, "each refusal", "refusals by the mail server: expected 2, found 1"),
        (
            {"summaries": Run.summaries[:1]},
            "each chat",
            "summary of flaky-1: expected (3, 'flaky-1 has 3 messages'), found None",
        ),
        (
            {"summaries": (("steady-1", 1, "steady-1 has 1 messages"), Run.summaries[1])},
            "each chat",
            "summary of steady-1: expected (2, 'steady-1 has 2 messages'), found (1, ",
        ),
        ({"answered": 2}, "the provider", "answers for steady-1: expected 1, found 2"),
        ({"retries": 1}, "each failure", "failures of the provider: expected 3, found 2"),
        (
            {"found": ()},
            "every resource",
            "found for resource1edition3: expected [('resource-1', 3)], found []",
        ),
        (
            {"stale": (("resource-1", 1),)},
            "every resource",
            "found for resource1edition1: expected [], found [('resource-1', 1)]",
        ),
    ],
)
def test_each_difference_is_found(spoilt: dict[str, Any], fact: str, difference: str) -> None:
    """Whatever does not agree is listed under the fact that it contradicts."""
    found = Run(**spoilt).differences()
    lines = next(lines for name, lines in found.items() if name.startswith(fact))
    assert any(line.startswith(difference) for line in lines), lines


def test_many_differences_are_cut_short() -> None:
    """A broken run lists a few differences of each fact and counts the rest."""
    findings = Run().findings()
    usages = {f"chat:m{number}": ("a", 1) for number in range(1, 21)}
    books = Books({"a": 10}, usages, (), Counter(), messages=BEFORE.messages)
    workload = replace(WORKLOAD, usages=20, twice=0)
    checks = audit(replace(findings, workload=workload, before=books, after=books))
    (check,) = [each for each in checks if each.fact == "each usage was charged once"]
    assert isinstance(check, Check)
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
    assert observed.endings == {("a", outcome.name): 1}
