"""Does the demonstration run anywhere, and does it find out when its books are wrong?"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from .commands import run

SCALE: Final = "--scale=0.02"


def demo(*options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a small demonstration as `make demo` does."""
    return run("jobs.demo", SCALE, *options, settings={"JOBS_BROKER_URL": "inline://", **settings})


@pytest.fixture(scope="module")
def report() -> str:
    """What a demonstration prints into a file."""
    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_books_balance(report: str) -> None:
    """The demonstration ends with balanced books and exit code 0."""
    assert report.endswith("The books balance.\n")


def test_the_report_says_what_happened(report: str) -> None:
    """What every actor did, retries with causes and dead letters with reasons are in the report."""
    figures = dict(re.findall(r"^([\w ,−=]+?)  +([\d,]+)$", report, re.MULTILINE))
    assert figures["charges submitted"] == "74"
    assert figures["charged"] == "60"
    assert figures["duplicates made harmless"] == "12"
    assert figures["rejected or invalid, see dead letters"] == "2"
    assert figures["accepted by the mail server"] == "4"
    assert figures["duplicates never sent"] == "1"
    assert figures["summarised"] == "7"
    assert figures["versions of resources submitted"] == "9"
    assert figures["resources found at their newest version"] == "2"
    assert re.search(r"critical +transient +the mail server answers 451 Greylisted", report)
    assert re.search(
        r"llm +transient +the model's API answers 429 Too Many Requests +1$", report, re.MULTILINE
    )
    assert re.search(
        r"critical +invalid +send_email unknown-1:receipt:order-unknown-1: the mail server", report
    )
    assert re.search(r"critical +rejected +charge_credit unpaid:m1: insufficient credit", report)
    assert re.search(r"llm +invalid +summarize_chat refused-1:\d: the model's API answers 422", report)


def test_a_file_gets_plain_lines(report: str) -> None:
    """Without a terminal, progress is printed line by line, free of control characters."""
    assert report.startswith("jobs: ")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", report)


@pytest.mark.parametrize(
    ("sabotage", "difference"),
    [
        ("lose-ledger-row", "ledger rows of credit:chat:m1: expected 1, found 0"),
        ("lose-email-key", "ledger rows of email:steady-1:receipt:order-steady-1: expected 1, found 0"),
        ("cut-summary", "found (1, 'steady-1 has "),
        ("stale-entry", "found for resource1edition1: expected [], found [('resource-1', 1)]"),
        ("charge-twice", "balance of account-1: expected "),
    ],
)
@pytest.mark.slow
def test_spoilt_books_are_found(sabotage: str, difference: str) -> None:
    """Whatever is lost, taken twice, cut or out of date ends with exit code 1, and is named."""
    done = demo(f"--sabotage={sabotage}")
    assert done.returncode == 1
    assert difference in done.stdout
    assert done.stdout.endswith("The books do not balance.\n")


@pytest.mark.slow
def test_nothing_of_others_is_touched(tmp_path: Path) -> None:
    """The demonstration has its own database and backoffs, whatever is set, and leaves no file behind."""
    others = {"JOBS_DATABASE_URL": f"sqlite:///{tmp_path}/mine.sqlite3", "JOBS_MIN_BACKOFF": "50m"}
    done = demo(TMPDIR=str(tmp_path), **others)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
