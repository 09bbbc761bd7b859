"""What is a person told at the end of the demonstration?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from .audit import Check
from .books import Books
from .evidence import Letter, Observed
from .workload import Workload


@dataclass(frozen=True)
class Figures:
    """What the report shows.

    Attributes:
        workload: what was submitted.
        before: the books before the first job.
        after: the books after the last one.
        letters: the dead letters.
        observed: how the deliveries ended.
        took: from the first submission to the last outcome.
    """

    workload: Workload
    before: Books
    after: Books
    letters: list[Letter]
    observed: Observed
    took: timedelta


def print_report(console: Console, figures: Figures, checks: list[Check]) -> None:
    """Print the figures, the checks with their differences, and the verdict."""
    for table in (_charges(figures), _retries(figures.observed), _letters(figures.letters)):
        console.print("", table, sep="\n")
    console.print()
    console.print(_checks(checks))
    jobs = len(figures.workload.charges()) + len(figures.workload.prompt_ids())
    seconds = figures.took.total_seconds()
    console.print(f"{jobs:,} jobs in {seconds:.1f} s, {jobs / seconds:,.0f} jobs/s, in one process on SQLite")
    if any(check.differences for check in checks):
        console.print("[bold red]The books do not balance.[/]")
    else:
        console.print("[bold green]The books balance.[/]")


def _charges(figures: Figures) -> Table:
    table = _table("Credit charges", "number")
    workload, before, after = figures.workload, figures.before, figures.after
    charged = after.charged().total()
    for text, number in (
        ("usages recorded", len(after.usages)),
        ("charges submitted", len(workload.charges())),
        ("charged", len(after.entries)),
        ("duplicates made harmless", figures.observed.endings["duplicate"]),
        ("rejected or invalid, see dead letters", sum(each.queue == "critical" for each in figures.letters)),
        ("credit before", sum(before.balances.values())),
        ("− charged", charged),
        ("= credit after", sum(after.balances.values())),
    ):
        table.add_row(text, f"{number:,}")
    return table


def _retries(observed: Observed) -> Table:
    table = _table("Retries", "kind", "why", "number")
    for (queue, kind, why), times in sorted(observed.retries.items()):
        table.add_row(queue, kind, why, f"{times:,}")
    return table


def _letters(letters: list[Letter]) -> Table:
    table = _table("Dead letters", "kind", "reason of one of them", "number")
    for (queue, kind), group in groupby(sorted(letters, key=_alike), key=_alike):
        first, *more = group
        table.add_row(queue, kind, f"{first.job}: {first.reason}", f"{1 + len(more):,}")
    return table


def _alike(letter: Letter) -> tuple[str, str]:
    return letter.queue, letter.kind


def _checks(checks: list[Check]) -> Group:
    lines = []
    for check in checks:
        mark, style = ("✗", "red") if check.differences else ("✓", "green")
        lines.append(Text(f" {mark} {check.fact}", style=style))
        lines += [Text(f"     {difference}", style="red") for difference in check.differences]
    return Group(*lines, "")


def _table(*columns: str) -> Table:
    table = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.columns[-1].justify = "right"
    return table
