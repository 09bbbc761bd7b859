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

from jobs import charge_credit, index_resource, send_email, store, summarize_chat
from jobs.sample.chats import write_chats
from jobs.sample.credit import write_usages
from jobs.sample.mail import write_mail
from jobs.sample.resources import write_resources
from jobs.settings import get_settings
from middleware.errors import JobsError
from middleware.observe import Follower
from middleware.store import migrate
from middleware.transport.inline import InlineBroker

from .audit import audit
from .books import Books, read_books
from .evidence import Letter, Observed
from .findings import Findings
from .mail_server import read_journal
from .progress import track
from .report import print_report
from .sabotage import NONE, SABOTAGES, spoil
from .workload import TASK, UNPAID_TASK, VERSIONS, Workload

PATIENCE: Final = timedelta(seconds=60)
"""How long to wait for the next outcome before the run counts as stuck."""

_WIDTH: Final = 100
"""Columns of a report that goes to a file."""


def run(file: Path, journal: Path, workload: Workload, sabotage: str = NONE) -> bool:
    """Run the demonstration and print the report.

    Parameters:
        file: the SQLite file, a new one.
        journal: the mail server's.
        workload: what to submit.
        sabotage: how to spoil the books before they are checked. Defaults to not at all.

    Returns:
        Whether the books balance.
    """
    logging.disable(logging.CRITICAL)  # hundreds of failures are part of the show: the report counts them
    console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _WIDTH)
    _seed(file, workload)
    before = read_books(file)
    began = time.monotonic()
    letters, observed = _submit_and_follow(console, workload, before)
    took = timedelta(seconds=time.monotonic() - began)
    spoil(file, sabotage)
    after = read_books(file)
    mail = read_journal(journal)
    findings = Findings(workload, before, after, letters, _tally(), mail, observed)
    checks = audit(findings)
    print_report(console, findings, took, checks)
    return not any(check.differences for check in checks)


def _seed(file: Path, workload: Workload) -> None:
    migrate(f"sqlite:///{file}", application="jobs")
    write_usages(accounts=workload.accounts, usages=workload.usages, balance=10_000, task=TASK)
    write_usages(accounts=1, usages=workload.unpaid, balance=0, task=UNPAID_TASK, owner="unpaid")
    write_mail(workload.users())
    write_chats(workload.chat_ids())
    write_resources(workload.resource_ids(), version=VERSIONS)


def _submit_and_follow(console: Console, workload: Workload, before: Books) -> tuple[list[Letter], Observed]:
    broker = dramatiq.get_broker()
    assert isinstance(broker, InlineBroker), "whoever starts this sets JOBS_BROKER_URL"
    follower, observed = Follower(broker), Observed()
    chats = [summarize_chat.message(chat, before.messages[chat]) for chat in workload.chat_ids()]
    submitted = broker.enqueue_many(chats)
    submitted += broker.enqueue_many([index_resource.message(*job) for job in workload.index_jobs()])
    submitted += broker.enqueue_many([send_email.message(*job) for job in workload.email_jobs()])
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
    answers = httpx.get(str(get_settings().llm_url)).raise_for_status().json()
    return {
        chat: {int(status): times for status, times in counts.items()} for chat, counts in answers.items()
    }


def main() -> int:
    """Run with the settings that `jobs.demo` prepared; return 0 if the books balance, else 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--sabotage", choices=SABOTAGES, required=True)
    options = parser.parse_args()
    try:
        workload = Workload().scaled(options.scale)
        return 0 if run(options.file, options.journal, workload, options.sabotage) else 1
    except JobsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
