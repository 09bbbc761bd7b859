"""What does the demonstration submit?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

SHUFFLE_SEED: Final = 20240229  # any fixed number: two runs submit in the same order
TASK: Final = "chat"
UNPAID_TASK: Final = "unpaid"
UNKNOWN_TASK: Final = "unknown"
PROMPTS: Final = {"steady": 180, "flaky": 60, "throttled": 40, "silent": 20, "refused": 12, "broken": 8}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How much of what.

    Attributes:
        accounts: accounts that can pay whatever comes. Defaults to 40.
        usages: their usages, each to be charged once. Defaults to 3,000.
        twice: how many of those are submitted twice. Defaults to 600.
        unpaid: usages of an account without credit: a business rule rejects them. Defaults to 10.
        unknown: charges for usages that nobody recorded: invalid. Defaults to 5.
        prompts: temper of the prompt → number of them. Defaults to 320 in all.
    """

    accounts: int = 40
    usages: int = 3000
    twice: int = 600
    unpaid: int = 10
    unknown: int = 5
    prompts: Mapping[str, int] = field(default_factory=lambda: dict(PROMPTS))

    def scaled(self, factor: float) -> Workload:
        """Return a workload of about `factor` times the size, with at least one of each."""
        return Workload(
            accounts=_scale(self.accounts, factor),
            usages=_scale(self.usages, factor),
            twice=_scale(self.twice, factor),
            unpaid=_scale(self.unpaid, factor),
            unknown=_scale(self.unknown, factor),
            prompts={temper: _scale(count, factor) for temper, count in self.prompts.items()},
        )

    def charges(self) -> list[tuple[str, str]]:
        """Return every charge to submit, (task_id, message_id), duplicates included, shuffled."""
        once = _numbered(TASK, self.usages)
        wrong = _numbered(UNPAID_TASK, self.unpaid) + _numbered(UNKNOWN_TASK, self.unknown)
        return _shuffled([*once, *once[: self.twice], *wrong])

    def prompt_ids(self) -> list[str]:
        """Return every prompt to submit, `<temper>-<number>`, shuffled."""
        return _shuffled(
            [f"{temper}-{n}" for temper, count in self.prompts.items() for n in range(1, count + 1)]
        )


def _scale(count: int, factor: float) -> int:
    return max(1, round(count * factor))


def _numbered(task: str, count: int) -> list[tuple[str, str]]:
    return [(task, f"m{number}") for number in range(1, count + 1)]


_T = TypeVar("_T")


def _shuffled(items: list[_T]) -> list[_T]:
    random.Random(SHUFFLE_SEED).shuffle(items)
    return items
