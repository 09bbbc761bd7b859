"""What is a person told at the end of the demonstration?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from .evidence import Letter, Observed
from .findings import Check, Findings
from .mail_server import ACCEPTED


def print_report(console: Console, findings: Findings, took: timedelta, checks: list[Check]) -> None:
    """Print the figures, the checks with their differences, and whether the books balance.

    Parameters:
        console: where to.
        findings: what was found.
        took: from the first submission to the last outcome.
        checks: what the audit made of it.
    """
    tables = (_charges(findings), _others(findings), _retries(findings.observed), _letters(findings.letters))
    for table in tables:
        console.print("", table, sep="\n")
    console.print()
    console.print(_checks(checks))
    jobs, seconds = findings.workload.size(), took.total_seconds()
    console.print(f"{jobs:,} jobs in {seconds:.1f} s, {jobs / seconds:,.0f} jobs/s, in one process on SQLite")
    if any(check.differences for check in checks):
        console.print("[bold red]The books do not balance.[/]")
    else:
        console.print("[bold green]The books balance.[/]")


def _charges(findings: Findings) -> Table:
    before, after = findings.before, findings.after
    return _figures(
        "Credit charges",
        ("usages recorded", len(after.usages)),
        ("charges submitted", len(findings.workload.charges())),
        ("charged", len(after.entries)),
        ("duplicates made harmless", findings.observed.duplicates()["charge_credit"]),
        ("rejected or invalid, see dead letters", findings.died("charge_credit")),
        ("credit before", sum(before.balances.values())),
        ("− charged", after.charged().total()),
        ("= credit after", sum(after.balances.values())),
    )


def _others(findings: Findings) -> Table:
    workload, duplicates = findings.workload, findings.observed.duplicates()
    return _figures(
        "Emails, summaries, index",
        ("emails submitted", len(workload.email_jobs())),
        ("accepted by the mail server", sum(each.status == ACCEPTED for each in findings.mail)),
        ("duplicates never sent", duplicates["send_email"]),
        ("chats submitted", len(workload.chat_ids())),
        ("summarised", len(findings.after.summaries)),
        ("versions of resources submitted", len(workload.index_jobs())),
        (
            "resources found at their newest version",
            len([each for each in findings.after.found.values() if each]),
        ),
    )


def _figures(title: str, *rows: tuple[str, int]) -> Table:
    table = _table(title, "number")
    for text, number in rows:
        table.add_row(text, f"{number:,}")
    return table


def _retries(observed: Observed) -> Table:
    table = _table("Retries", "kind", "why", "number")
    for (queue, kind, why), times in sorted(observed.retries.items()):
        table.add_row(queue, kind, Text(why), f"{times:,}")
    return table


def _letters(letters: Sequence[Letter]) -> Table:
    table = _table("Dead letters", "kind", "reason of one of them", "number")
    for (queue, kind, _), group in groupby(sorted(letters, key=_alike), key=_alike):
        first, *more = group
        table.add_row(queue, kind, Text(f"{first.job}: {first.reason}"), f"{1 + len(more):,}")
    return table


def _alike(letter: Letter) -> tuple[str, str, str]:
    return letter.queue, letter.kind, letter.actor


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
