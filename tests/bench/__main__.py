"""Run the benchmarks and print medians and ratios: `make bench`, ARGS='--runs 5 --json FILE'."""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.noop import RIVALS, measure

TARGET = 2.5


def main() -> None:
    """Measure in pairs, one after the other, so that a drift of the machine meets both."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--runs", type=int, default=3, help="pairs of runs (default: 3)")
    parser.add_argument("--jobs", type=int, default=20_000, help="no-op jobs a run (default: 20000)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    broker_url = os.environ["JOBS_TEST_BROKER_URL"]
    management_url = os.environ["JOBS_TEST_MANAGEMENT_URL"]
    rates: dict[str, list[float]] = {which: [] for which in RIVALS}
    console = Console()
    for run in range(options.runs):
        for which in RIVALS:
            rates[which].append(measure(which, options.jobs, broker_url, management_url))
        console.print(f"pair {run + 1}: kit {rates['kit'][-1]:,.0f}/s, stock {rates['stock'][-1]:,.0f}/s")
    ratios = [kit / stock for kit, stock in zip(rates["kit"], rates["stock"], strict=True)]
    table = Table(title="No-op jobs per second, one process, 8 threads, quorum queue")
    for column in ("", "median", "lowest", "highest"):
        table.add_column(column, justify="right" if column else "left")
    for which in RIVALS:
        table.add_row(which, *(f"{value:,.0f}" for value in _spread(rates[which])))
    table.add_row(f"ratio (target ≥ {TARGET})", *(f"{value:.2f}" for value in _spread(ratios)))
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps({"noop": {**rates, "ratios": ratios}}, indent=2))


def _spread(values: list[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


if __name__ == "__main__":
    main()
