"""How far is it? A bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_LINES: Final = 10


@contextmanager
def track(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress while the block runs; it gets a function to call with how many are done."""
    if not console.is_terminal:
        yield _lines(console, what, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda done: progress.update(bar, completed=done)


def _lines(console: Console, what: str, total: int) -> Callable[[int], None]:
    step = max(1, total // _LINES)
    shown = 0

    def update(done: int) -> None:
        nonlocal shown
        if done // step > shown or (done == total and shown * step < total):
            shown = done // step
            console.print(f"{what}: {done:,} of {total:,}")

    return update
