"""The demonstration itself: seed, submit, follow every job to its end, then check the books."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

import dramatiq
import httpx
from rich.console import Console

from jobs import ask_provider, charge_credit, store
from jobs.sample import write_sample
from jobs.settings import get_settings
from middleware.errors import JobsError
from middleware.observe import Follower
from middleware.store import migrate
from middleware.transport.inline import InlineBroker

from .audit import audit
from .books import read_books
from .evidence import Letter, Observed
from .progress import track
from .report import Figures, print_report
from .sabotage import NONE, SABOTAGES, spoil
from .workload import TASK, UNPAID_TASK, Workload

PATIENCE: Final = timedelta(seconds=60)
"""How long to wait for the next outcome before the run counts as stuck."""

_WIDTH: Final = 100
"""Columns of a report that goes to a file."""


def run(file: Path, workload: Workload, sabotage: str = NONE) -> bool:
    """Run the demonstration on a new SQLite file and print the report.

    Returns:
        Whether the books balance.
    """
    logging.disable(logging.CRITICAL)  # hundreds of failures are part of the show: the report counts them
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    _seed(file, workload)
    before = read_books(file)
    began = time.monotonic()
    letters, observed = _submit_and_follow(console, workload)
    took = timedelta(seconds=time.monotonic() - began)
    spoil(file, sabotage)
    after = read_books(file)
    checks = audit(workload, before, after, letters, _tally(), observed)
    print_report(console, Figures(workload, before, after, letters, observed, took), checks)
    return not any(check.differences for check in checks)


def _seed(file: Path, workload: Workload) -> None:
    migrate(f"sqlite:///{file}", application="jobs")
    write_sample(accounts=workload.accounts, usages=workload.usages, balance=10_000, task=TASK)
    write_sample(accounts=1, usages=workload.unpaid, balance=0, task=UNPAID_TASK, owner="unpaid")


def _submit_and_follow(console: Console, workload: Workload) -> tuple[list[Letter], Observed]:
    broker = dramatiq.get_broker()
    assert isinstance(broker, InlineBroker), "whoever starts this sets JOBS_BROKER_URL"
    follower, observed = Follower(broker), Observed()
    submitted = broker.enqueue_many([ask_provider.message(prompt) for prompt in workload.prompt_ids()])
    submitted += broker.enqueue_many([charge_credit.message(*charge) for charge in workload.charges()])
    with track(console, "jobs", len(submitted)) as show:
        for delivery, outcome in follower.outcomes(submitted, PATIENCE):
            observed.note(delivery, outcome)
            show(observed.ended)
    broker.join_all(PATIENCE)
    for queue in broker.specs:
        counts = broker.queue_counts(queue)
        observed.left[queue] = sum(count or 0 for count in (counts.waiting, counts.active, counts.delayed))
    letters = [Letter.read(letter) for queue in broker.specs for letter in broker.dead_letters(queue)]
    broker.close()
    store.dispose()
    return letters, observed


def _tally() -> dict[str, dict[int, int]]:
    """Ask the provider what it answered."""
    answers = httpx.get(get_settings().provider_url).raise_for_status().json()
    return {
        prompt: {int(status): times for status, times in counts.items()} for prompt, counts in answers.items()
    }


def main() -> int:
    """Run with the settings that `jobs.demo` prepared; return 0 if the books balance, else 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--sabotage", choices=SABOTAGES, required=True)
    options = parser.parse_args()
    try:
        return 0 if run(options.file, Workload().scaled(options.scale), options.sabotage) else 1
    except JobsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
