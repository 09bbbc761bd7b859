"""Do the books balance?

Each check compares what was submitted with what the database, the broker's dead letters and the provider's
own tally say; what the run counted itself is one side of a comparison at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from .books import Books
from .evidence import Letter, Observed
from .provider import temper_of
from .workload import TASK, UNKNOWN_TASK, UNPAID_TASK, Workload

_SHOWN: Final = 5  # differences listed per check
_KINDS: Final = {
    UNPAID_TASK: "rejected",
    UNKNOWN_TASK: "invalid",
    "refused": "invalid",
    "broken": "transient",
}
"""Tasks and tempers of prompts whose jobs cannot succeed, and the kind of their dead letters."""


@dataclass(frozen=True)
class Check:
    """A fact and what speaks against it.

    Attributes:
        fact: one sentence.
        differences: empty if the fact holds.
    """

    fact: str
    differences: tuple[str, ...]


def audit(
    workload: Workload,
    before: Books,
    after: Books,
    letters: Iterable[Letter],
    tally: dict[str, dict[int, int]],
    observed: Observed,
) -> list[Check]:
    """Return all checks.

    Parameters:
        workload: what was submitted.
        before: the books before the first job.
        after: the books after the last one.
        letters: the broker's dead letters.
        tally: the provider's answers, prompt → status → number.
        observed: the outcomes of all deliveries and what is left in the queues.
    """
    charges = Counter(f"{task}:{message}" for task, message in workload.charges())
    payable = {each: after.usages[each] for each in charges if each.startswith(f"{TASK}:")}
    dead = list(letters)
    return [
        _check("every job ended and the queues are empty", _unfinished(workload, observed)),
        _check("each usage was charged once", _entries(payable, after)),
        _check("every charge has its ledger row, and no other row exists", _ledger(after)),
        _check("every account's balance before − charged = after", _balances(before, after)),
        _check("every second submission was a duplicate", _duplicates(charges, payable, observed)),
        _check(
            "exactly the hopeless jobs are dead letters, each with its evidence", _letters(workload, dead)
        ),
        _check("the provider answered each prompt once", _answers(workload, tally)),
        _check("each failure of the provider is a retry or a dead letter", _failures(tally, dead, observed)),
    ]


def _check(fact: str, differences: Iterator[str]) -> Check:
    found = list(differences)
    if len(found) > _SHOWN:
        found[_SHOWN:] = [f"… and {len(found) - _SHOWN} more"]
    return Check(fact, tuple(found))


def _differ(what: str, expected: object, found: object) -> Iterator[str]:
    if expected != found:
        yield f"{what}: expected {expected}, found {found}"


def _unfinished(workload: Workload, observed: Observed) -> Iterator[str]:
    submitted = len(workload.charges()) + len(workload.prompt_ids())
    yield from _differ("jobs ended", submitted, observed.ended)
    for queue, left in observed.left.items():
        yield from _differ(f"jobs left in {queue}", 0, left)


def _entries(payable: dict[str, tuple[str, int]], after: Books) -> Iterator[str]:
    times = Counter(reference for reference, _, _ in after.entries)
    for reference in sorted(payable.keys() | times.keys()):
        yield from _differ(f"entries of {reference}", int(reference in payable), times[reference])
    for reference, account, amount in after.entries:
        if reference in payable:
            yield from _differ(f"entry {reference}", payable[reference], (account, amount))


def _ledger(after: Books) -> Iterator[str]:
    expected = Counter(f"credit:{reference}" for reference, _, _ in after.entries)
    for key in sorted(expected.keys() | after.ledger.keys()):
        yield from _differ(f"ledger rows of {key}", expected[key], after.ledger[key])


def _balances(before: Books, after: Books) -> Iterator[str]:
    charged = after.charged()
    for account, balance in sorted(before.balances.items()):
        yield from _differ(f"balance of {account}", balance - charged[account], after.balances.get(account))


def _duplicates(charges: Counter[str], payable: Iterable[str], observed: Observed) -> Iterator[str]:
    again = sum(charges[reference] - 1 for reference in payable)
    yield from _differ("duplicates", again, observed.endings["duplicate"])


def _letters(workload: Workload, letters: list[Letter]) -> Iterator[str]:
    expected = Counter(
        f"charge_credit {task}:{message} ({_KINDS[task]})"
        for task, message in workload.charges()
        if task in _KINDS
    )
    expected.update(
        f"ask_provider {prompt} ({_KINDS[temper_of(prompt)]})"
        for prompt in workload.prompt_ids()
        if temper_of(prompt) in _KINDS
    )
    found = Counter(f"{letter.job} ({letter.kind})" for letter in letters)
    for job in sorted(expected.keys() | found.keys()):
        yield from _differ(f"dead letters of {job}", expected[job], found[job])
    for letter in letters:
        if not letter.reason or len(letter.history) != letter.attempts:
            yield f"the dead letter of {letter.job} lacks evidence: {letter}"


def _answers(workload: Workload, tally: dict[str, dict[int, int]]) -> Iterator[str]:
    for prompt in workload.prompt_ids():
        expected = 0 if temper_of(prompt) in _KINDS else 1
        yield from _differ(f"answers to {prompt}", expected, tally.get(prompt, {}).get(200, 0))


def _failures(tally: dict[str, dict[int, int]], dead: list[Letter], observed: Observed) -> Iterator[str]:
    failed = sum(times for answers in tally.values() for status, times in answers.items() if status != 200)
    died = sum(letter.queue == "llm" for letter in dead)
    yield from _differ("failures of the provider", failed, observed.retries_on("llm") + died)
