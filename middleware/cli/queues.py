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

STATES: Final = {
    "waiting": "ready to be fetched by a worker",
    "active": "with a worker: running, or fetched and next; needs JOBS_MANAGEMENT_URL, lags by seconds",
    "delayed": "until it is due: sent with a delay, or a retry",
    "failed": "cannot succeed: lies in NAME.XQ with its reasons",
    "dead": "failed, moved to an archive, and not resolved; not known while nothing archives",
}
UNKNOWN: Final = "–"


def queues(
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects; null where not known.")] = False,
) -> None:
    """Count the jobs of each queue that the application declares, by state.

    Queues that it does not declare are left out: `rabbitmqctl list_queues` lists them.
    """
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
    for state, meaning in STATES.items():
        typer.echo(f"  {state:<8} {meaning}")
    if any(None in count.values() for count in counts):
        typer.echo(f"  {UNKNOWN:<8} not known, as for a queue that was never used")


def _show(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"
