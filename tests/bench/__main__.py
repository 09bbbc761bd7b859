"""Run the benchmarks: `make bench`, ARGS='--runs 5 --only send,noop --json FILE --chart FILE'."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from rich.console import Console

from deploy.services.errors import CannotServe
from tests.bench import chart, report
from tests.bench.choosing import chosen
from tests.bench.machine import circumstances
from tests.bench.record import record
from tests.bench.rounds import Measured, measure
from tests.bench.row import Row
from tests.bench.services import Services
from tests.bench.table import ROWS

_WIDTH: Final = 100
"""Of the tables in a file, in characters."""


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(prog="make bench", description="Figures beside those of rivals.")
    options.add_argument("--runs", type=int, default=3, metavar="N", help="rounds of each row (default: 3)")
    options.add_argument("--only", default="", metavar="ROW,…", help="these rows (default: all)")
    options.add_argument("--scale", type=float, default=1.0, help="part of the work, to try it (default: 1)")
    options.add_argument("--json", type=Path, metavar="FILE", help="write samples and versions there")
    options.add_argument("--chart", type=Path, metavar="FILE", help="draw what was reached there: .svg, .png")
    options.add_argument("--list", action="store_true", help="list the rows, measure nothing")
    return options


def main(arguments: Sequence[str]) -> int:
    """Measure row by row; 1 if a contestant failed, 2 if nothing could be measured."""
    options = parser().parse_args(arguments)
    try:
        rows = chosen(ROWS, options.only)
        if options.list:
            return _list(rows)
        services = Services.given(os.environ, options.scale)
    except (ValueError, CannotServe) as problem:
        print(problem, file=sys.stderr)
        return 2
    return _measure(rows, services, options)


def _list(rows: Sequence[Row]) -> int:
    for row in rows:
        print(f"{row.name:18} {row.what}")
    return 0


def _measure(rows: Sequence[Row], services: Services, options: argparse.Namespace) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    around = circumstances(services)
    done: list[Measured] = []
    for row in rows:
        done.append(measure(row, services, options.runs, _saying(console)))
        if options.json:  # after each row: a run takes long, and what is done is not lost
            options.json.write_text(json.dumps(record(done, around), indent=2) + "\n")
    console.print(report.figures(done), report.targets(done), report.conditions(done, services.scale))
    if options.chart:
        _draw(done, options.chart)
    return 1 if any(measured.failed for measured in done) else 0


def _saying(console: Console) -> Callable[[str], None]:
    return lambda line: console.print(line, markup=False, soft_wrap=True)


def _draw(done: Sequence[Measured], file: Path) -> None:
    if missing := chart.missing():
        print(f"no chart: expected {missing}")
    else:
        chart.draw(done, file)


def _ended(number: int, _frame: FrameType | None) -> NoReturn:
    """Leave through every `finally`: workers, servers and virtual hosts go as well."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _ended)
    sys.exit(main(sys.argv[1:]))
