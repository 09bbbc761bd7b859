"""What is there to check after the run, and what does a check come to?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .books import Books
from .evidence import Letter, Observed
from .mail_server import Answered
from .workload import Workload

_SHOWN: Final = 5  # differences listed per check


@dataclass(frozen=True)
class Findings:
    """What was submitted, and what everybody says came of it.

    Attributes:
        workload: what was submitted.
        before: the books before the first job.
        after: the books after the last one.
        letters: the broker's dead letters.
        answers: the provider's tally, chat → status → number.
        mail: the mail server's journal.
        observed: the outcomes of all deliveries and what is left in the queues.
    """

    workload: Workload
    before: Books
    after: Books
    letters: Sequence[Letter]
    answers: Mapping[str, Mapping[int, int]]
    mail: Sequence[Answered]
    observed: Observed

    def died(self, actor: str) -> int:
        """Return how many of an actor's jobs are dead letters."""
        return sum(letter.actor == actor for letter in self.letters)


@dataclass(frozen=True)
class Check:
    """A fact and what speaks against it.

    Attributes:
        fact: one sentence.
        differences: empty if the fact holds.
    """

    fact: str
    differences: tuple[str, ...]


def check(fact: str, differences: Iterator[str]) -> Check:
    """Return a fact with the first differences, and how many more there are."""
    found = list(differences)
    if len(found) > _SHOWN:
        found[_SHOWN:] = [f"… and {len(found) - _SHOWN} more"]
    return Check(fact, tuple(found))


def differ(what: str, expected: object, found: object) -> Iterator[str]:
    """Yield a line if something is not what it should be."""
    if expected != found:
        yield f"{what}: expected {expected}, found {found}"
