"""How is a row measured? In rounds, each contestant once a round, and what fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.bench.row import Contestant, Row
from tests.bench.services import Services


@dataclass
class Measured:
    """What came out of a row.

    Attributes:
        row: what was measured.
        samples: contestant → its figures, one a round; without those that are absent or failed.
        absent: contestant → what has to be installed for it.
        failed: contestant → what went wrong; it takes no part in the rounds that follow.
    """

    row: Row
    samples: dict[str, list[float]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def measure(row: Row, services: Services, rounds: int, say: Callable[[str], None]) -> Measured:
    """Measure a row.

    Parameters:
        row: who is measured.
        services: where.
        rounds: how often; a row may ask for fewer.
        say: told each figure, each absence and each failure, in one line.
    """
    measured = Measured(row, absent=_absent(row, say))
    present = [each for each in row.contestants if each.name not in measured.absent]
    for number in range(rounds if row.rounds is None else min(rounds, row.rounds)):
        for contestant in rotated(present, number):
            if contestant.name not in measured.failed:
                say(f"{row.name}, round {number + 1}: {_once(measured, contestant, services)}")
    return measured


def rotated(present: Sequence[Contestant], number: int) -> list[Contestant]:
    """Return the contestants in the order of a round: another one begins each time."""
    start = number % max(1, len(present))
    return [*present[start:], *present[:start]]


def _absent(row: Row, say: Callable[[str], None]) -> dict[str, str]:
    found = {}
    for contestant in row.contestants:
        if missing := contestant.missing():
            found[contestant.name] = missing
            say(f"{row.name}: without {contestant.name}: {missing}")
    return found


def _once(measured: Measured, contestant: Contestant, services: Services) -> str:
    try:
        value = contestant.measure(services)
    except Exception as error:  # of whatever kind: the figures of the others are worth having
        measured.failed[contestant.name] = f"{type(error).__name__}: {error}"
        measured.samples.pop(contestant.name, None)
        return f"{contestant.name} failed: {_short(measured.failed[contestant.name])}"
    measured.samples.setdefault(contestant.name, []).append(value)
    return f"{contestant.name} {value:,.2f} {measured.row.unit}"


def _short(text: str) -> str:
    """Return the first line and, of a traceback or a log, the last one, which says most."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else f"{lines[0]} … {lines[-1].strip()}"
