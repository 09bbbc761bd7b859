"""`jobsctl prune`: which idempotency keys may the ledger forget?"""

from __future__ import annotations

import signal
import threading
import time
from datetime import datetime, timedelta
from types import FrameType
from typing import Annotated, Final

import typer

from ..durations import format_duration, parse_duration
from ..effects.ledger import Ledger
from ..effects.pruning import Pruned
from .application import load_application
from .problems import BadInput

_INTERRUPTED: Final = 130
_SECOND: Final = timedelta(seconds=1)


def prune(
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Such as 90d; default: JOBS_LEDGER_RETENTION."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and delete nothing.")] = False,
) -> None:
    """Forget idempotency keys that no delivery can ask for any more; may be interrupted and run again."""
    application, broker = load_application()
    ledger = Ledger.of(broker)
    keep = ledger.retention.ledger if older_than is None else _read(older_than)
    pruner = ledger.pruner(broker, None if older_than is None else keep)
    try:
        if dry_run:
            found = pruner.count()
            typer.echo(f"would delete {_counted(found)} from before {_at(found.before)}")
            return
        began = time.monotonic()
        pruned = pruner.run(_told_to_stop(), lambda before, left: _announce(keep, before, left))
    finally:
        application.store.dispose()
    typer.echo(f"deleted {_counted(pruned)} in {round(time.monotonic() - began)} s")
    if not pruned.is_complete:
        typer.echo("interrupted; the next run goes on", err=True)
        raise typer.Exit(_INTERRUPTED)


def _read(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--older-than: {error}") from None


def _announce(keep: timedelta, before: datetime, left: timedelta) -> None:
    typer.echo(f"forgetting keys from before {_at(before)}: {format_duration(keep)} and 1 h of spare")
    if left > timedelta(0):
        typer.echo(
            f"waiting {format_duration(-(-left // _SECOND) * _SECOND)} first, until every worker has heard "
            "of it and every job that runs now has ended"
        )


def _told_to_stop() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set."""
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        # On a thread of its own: a handler that interrupts a wait must not take the same lock.
        threading.Thread(target=stop.set).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop


def _counted(pruned: Pruned) -> str:
    keys = f"{pruned.keys:,} key{'' if pruned.keys == 1 else 's'}"
    if not pruned.attempts:
        return keys
    return f"{keys} and {pruned.attempts:,} attempt{'' if pruned.attempts == 1 else 's'} at external effects"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
