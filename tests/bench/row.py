"""What is one line of the benchmark table: who is measured, in which unit, and what is it to reach?

A row is measured in rounds. In each round every contestant runs once, one after the other, so that a drift
of the machine meets all of them; a ratio is taken within a round, and the median of the rounds counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.bench.services import Services

KIT: Final = "kit"
"""What the kit's own contestant is called, in every row."""

Samples = Mapping[str, Sequence[float]]
"""Contestant → its figures, one a round; a contestant that is absent has no entry."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """Somebody who does the work of a row.

    Attributes:
        name: shown in the table; the first contestant of a row is `KIT`.
        measure: does the work once, on services of the benchmark's own, and returns the row's figure.
        missing: says what has to be installed for it, and how; empty if nothing. Defaults to nothing.
    """

    name: str
    measure: Callable[[Services], float]
    missing: Callable[[], str] = str


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a row is to reach: a ratio of two contestants, or the figure of one.

    Attributes:
        of: the contestant that has to reach it. Defaults to the kit.
        to: what its figure is divided by, round by round; None takes the figure as it is.
        at_least: the lowest median that reaches the target, None if there is none.
        at_most: the highest one, None if there is none.
    """

    of: str = KIT
    to: str | None = None
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) is (self.at_most is None):
            raise ValueError(f"expected a target to have at_least or at_most, got: {self}; give one of them")

    @property
    def name(self) -> str:
        """What is compared with the bound: `kit ÷ stock`, or `kit` for a figure as it is."""
        return self.of if self.to is None else f"{self.of} ÷ {self.to}"

    @property
    def bound(self) -> float:
        """The lowest or the highest median that reaches the target."""
        bound = self.at_most if self.at_least is None else self.at_least
        assert bound is not None  # by __post_init__
        return bound

    def margin(self, value: float) -> float:
        """How far beyond the bound a value is: 1.0 is on it, more is better, whichever way it points."""
        return value / self.bound if self.at_least is not None else self.bound / value

    def values(self, samples: Samples) -> list[float] | None:
        """Return what is compared with the bound, one a round; None if a contestant is absent."""
        if self.of not in samples or (self.to is not None and self.to not in samples):
            return None
        if self.to is None:
            return list(samples[self.of])
        return [mine / theirs for mine, theirs in zip(samples[self.of], samples[self.to], strict=True)]

    def is_reached(self, samples: Samples) -> bool | None:
        """Whether the median reaches the target; None if it cannot be told."""
        values = self.values(samples)
        if values is None:
            return None
        median = statistics.median(values)
        return median >= self.bound if self.at_least is not None else median <= self.bound


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        name: what `--only` takes; words joined by hyphens.
        what: what is measured, and under which conditions, in one sentence.
        unit: of the figures: `jobs/s`, `ms`, `MiB`.
        contestants: who is measured, the kit first.
        targets: what is to be reached.
        rounds: at most so many, for work that takes minutes. Defaults to as many as are asked for.
    """

    name: str
    what: str
    unit: str
    contestants: Sequence[Contestant]
    targets: Sequence[Target] = field(default=())
    rounds: int | None = None
