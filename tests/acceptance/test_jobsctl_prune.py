"""Does `jobsctl prune` say what it does, and do nothing that it should not?"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from middleware import Store

from .commands import embedded, fail, succeed
from .surroundings import surroundings
from .workers import ROOT

pytestmark = pytest.mark.slow  # a process for each command

DAY = timedelta(days=1)


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Settings of an embedded application whose tables are there."""
    settings = embedded(tmp_path)
    succeed("migrate", settings=settings)
    return settings


@pytest.fixture
def store(settings: dict[str, str]) -> Iterator[Store]:
    """Its database, with two keys of 200 days ago and one of today."""
    store = Store(settings["JOBS_DATABASE_URL"])
    with store.writing() as connection:
        for key, age in (("a", 200), ("b", 200), ("c", 0)):
            connection.execute(
                text(
                    "INSERT INTO job_ledger (key, args_hash, actor, message_id, created_at) "
                    "VALUES (:key, x'00', 'act', 'm', :at)"
                ),
                {"key": key, "at": written(timedelta(days=age))},
            )
    yield store
    store.dispose()


def written(age: timedelta) -> str:
    """Return a moment so long ago, as SQLite keeps it."""
    return (datetime.now(UTC) - age).strftime("%Y-%m-%d %H:%M:%S.%f")


def count(store: Store) -> int:
    """Return how many keys are spent."""
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM job_ledger")).scalar_one())


def test_a_dry_run_counts_and_deletes_nothing(settings: dict[str, str], store: Store) -> None:
    """It says how many keys would go, and leaves the watermark alone."""
    said = succeed("prune", "--dry-run", settings=settings)
    assert said.startswith("would delete 2 keys from before 20")
    assert count(store) == 3
    assert "0 keys" in succeed("prune", "--dry-run", "--older-than", "300d", settings=settings)
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM job_watermark")).all() == []


def test_a_run_says_what_it_forgets(settings: dict[str, str], store: Store) -> None:
    """A watermark that was raised long enough ago need not be waited for."""
    with store.writing() as connection:
        connection.execute(
            text("INSERT INTO job_watermark (id, watermark, raised_at) VALUES (1, :mark, :raised)"),
            {"mark": written(120 * DAY), "raised": written(timedelta(hours=1))},
        )
    said = succeed("prune", settings=settings).splitlines()
    assert said[0].startswith("forgetting keys from before 20")
    assert said[0].endswith("UTC: 120d and 1 h of spare")
    assert said[1].startswith("deleted 2 keys in ")
    assert len(said) == 2
    assert count(store) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_wait_can_be_interrupted(settings: dict[str, str], store: Store, number: int) -> None:
    """It tells how long it waits and why; interrupted, it has deleted nothing, and the next run goes on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "middleware.cli", "prune"],
        cwd=ROOT,
        env=surroundings(**settings, PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    # The queue llm's five minutes, 25 s of grace, a reading's minute and half a minute to spare.
    assert process.stdout.readline().startswith(("waiting 6m55s first", "waiting 6m54s first"))
    process.send_signal(number)
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.startswith("deleted 0 keys")
    assert complained == "interrupted; the next run goes on\n"
    assert count(store) == 3


def test_what_may_be_asked_for_is_not_forgotten(settings: dict[str, str], store: Store) -> None:
    """Too young an age is refused with the sum; so is one that is none, and a setting that is too low."""
    said = fail(2, "prune", "--older-than", "60d", settings=settings)
    assert "expected --older-than to be at least 61d" in said
    assert "JOBS_MAX_DELAY 30d + wait_limit of queue" in said
    assert "got: 60d; raise it, or lower" in said
    assert "expected a duration to be a number with" in fail(
        2, "prune", "--older-than", "x", settings=settings
    )
    low = settings | {"JOBS_LEDGER_RETENTION": "59d"}
    assert "JOBS_MAX_DELAY + JOBS_REPLAY_WINDOW (30d + 30d = 60d)" in fail(2, "prune", settings=low)
    low = settings | {"JOBS_LEDGER_RETENTION": "60d"}
    assert "expected JOBS_LEDGER_RETENTION to be at least 61d" in fail(2, "prune", settings=low)
    low |= {"JOBS_BROKER_URL": "amqp://127.0.0.1:1"}
    assert "expected JOBS_LEDGER_RETENTION to be at least 61d" in fail(2, "maintenance", settings=low)
    assert count(store) == 3
