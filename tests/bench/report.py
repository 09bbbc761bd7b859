"""How do the figures read on a terminal? Three tables: what came out, what should, and what was done."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from tests.bench.rounds import Measured
from tests.bench.row import Row, Target

_WORDS = {True: "[green]reached[/]", False: "[red]not reached[/]", None: "not measured"}


def figures(all_measured: Iterable[Measured]) -> Table:
    """Return who reached which figure in which row."""
    table = Table(title="Figures")
    for column in ("row", "contestant"):
        table.add_column(column, no_wrap=True)
    for column in ("median", "lowest", "highest"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    for measured in all_measured:
        name = measured.row.name
        for contestant in measured.row.contestants:
            table.add_row(name, contestant.name, *_cells(measured, contestant.name))
            name = ""
        table.add_section()
    return table


def conditions(all_measured: Iterable[Measured], scale: float = 1.0) -> Table:
    """Return under which conditions each row was measured; a scale other than 1.0 is in the title."""
    table = Table(title="Conditions" if scale == 1.0 else f"Conditions, with {scale:g} of the jobs")
    table.add_column("row", no_wrap=True)
    table.add_column("what was measured")
    for measured in all_measured:
        table.add_row(measured.row.name, Text(measured.row.what))
    return table


def targets(all_measured: Iterable[Measured]) -> Table:
    """Return what each target asks for, what was measured, and whether that is enough."""
    table = Table(title="Targets, with the median of the rounds (lowest–highest)")
    for column in ("row", "of", "measured", "target"):
        table.add_column(column, no_wrap=True)
    table.add_column()
    for measured in all_measured:
        for target in measured.row.targets:
            values = target.values(measured.samples)
            table.add_row(
                measured.row.name,
                target.name,
                "–" if values is None else summary(values),
                bound(target, measured.row),
                _WORDS[target.is_reached(measured.samples)],
            )
    return table


def summary(values: Sequence[float]) -> str:
    """Return `2.61 (2.40–2.75)`."""
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


def bound(target: Target, row: Row) -> str:
    """Return `≥ 2.5`, or `≤ 10 ms` for a figure that is no ratio."""
    sign = "≤" if target.at_least is None else "≥"
    return f"{sign} {target.bound:g}" + (f" {row.unit}" if target.to is None else "")


def number(value: float) -> str:
    """Return a figure with as many digits as a reader compares: `12,345`, `45.1`, `2.61`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cells(measured: Measured, contestant: str) -> list[str]:
    if contestant in measured.samples:
        values = measured.samples[contestant]
        spread = (statistics.median(values), min(values), max(values))
        return [*map(number, spread), measured.row.unit]
    return ["–", "–", "–", "failed" if contestant in measured.failed else "absent"]
