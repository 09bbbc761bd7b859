"""`jobsctl queues`: how many jobs are in which state?"""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from .application import load_application

STATES: Final = ("waiting", "active", "delayed", "failed", "dead")
UNKNOWN: Final = "–"


def queues(
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects; null where not known.")] = False,
) -> None:
    """Count each queue's jobs: waiting, active, delayed, failed (in .XQ), dead (archived)."""
    _, broker = load_application()
    if broker.is_inline:
        typer.echo(
            "The inline broker's jobs live in the process that sends them; this one has none.", err=True
        )
    counts = [dataclasses.asdict(broker.queue_counts(name)) for name in broker.specs]
    if as_json:
        typer.echo(json.dumps(counts, indent=2))
        return
    table = Table("queue", box=box.SIMPLE)
    for state in STATES:
        table.add_column(state, justify="right")
    for count in counts:
        table.add_row(count["queue"], *(_show(count[state]) for state in STATES))
    Console().print(table)
    if any(None in count.values() for count in counts):
        typer.echo(
            f"  {UNKNOWN} not known: unused queues; active needs the management API and lags by seconds"
        )


def _show(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"
