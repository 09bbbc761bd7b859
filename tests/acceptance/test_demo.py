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


def test_the_books_balance(tmp_path: Path) -> None:
    """The demonstration ends with balanced books and exit code 0, and leaves nothing behind."""
    done = demo(TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("The books balance.\n")
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_report_says_what_happened() -> None:
    """Charges, duplicates, retries with causes and dead letters with reasons are in the report."""
    report = demo().stdout
    figures = dict(re.findall(r"^([\w ,−=]+?)  +([\d,]+)$", report, re.MULTILINE))
    assert figures["charges submitted"] == "74"
    assert figures["charged"] == "60"
    assert figures["duplicates made harmless"] == "12"
    assert figures["rejected or invalid, see dead letters"] == "2"
    assert re.search(r"llm +transient +the provider answers 429 Too Many Requests +1$", report, re.MULTILINE)
    assert re.search(r"critical +rejected +charge_credit unpaid:m1: insufficient credit", report)
    assert re.search(r"llm +invalid +ask_provider refused-1: the provider answers 422", report)


def test_a_file_gets_plain_lines() -> None:
    """Without a terminal, progress is printed line by line, free of control characters."""
    output = demo().stdout
    assert output.startswith("jobs: ")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", output)


@pytest.mark.parametrize(
    ("sabotage", "difference"),
    [
        ("lose-entry", "entries of chat:m1: expected 1, found 0"),
        ("lose-ledger-row", "ledger rows of credit:chat:m1: expected 1, found 0"),
        ("charge-twice", "balance of account-1: expected "),
    ],
)
def test_spoilt_books_are_found(sabotage: str, difference: str) -> None:
    """A lost entry, a lost ledger row or a second deduction ends with exit code 1, and is named."""
    done = demo(f"--sabotage={sabotage}")
    assert done.returncode == 1
    assert difference in done.stdout
    assert done.stdout.endswith("The books do not balance.\n")


def test_settings_of_others_do_not_matter(tmp_path: Path) -> None:
    """The demonstration keeps to its own database and its own backoffs, whatever the environment says."""
    done = demo(
        JOBS_DATABASE_URL=f"sqlite:///{tmp_path}/mine.sqlite3", JOBS_MIN_BACKOFF="1h", JOBS_MAX_DELAY="1h"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
