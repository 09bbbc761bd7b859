"""The maintenance prunes when it is due, and goes on after the database was away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from middleware.effects import pruning_duty
from middleware.effects.pruning import Pruner, is_due
from middleware.effects.pruning_duty import pruning
from middleware.store import Store, job_ledger

from ..waiting import wait_until
from .keyed_jobs import keys

DAY = timedelta(days=1)


@pytest.fixture
def old(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A ledger with a key that is to be forgotten, looked at often."""
    monkeypatch.setattr(pruning_duty, "_LOOK_EVERY", timedelta(milliseconds=20))
    ago = datetime.now(UTC) - 200 * DAY
    with store.writing() as connection:
        row = {"key": "old", "args_hash": b"0", "actor": "act", "message_id": "m", "created_at": ago}
        connection.execute(job_ledger.insert().values(row))
    return store


@contextmanager
def on_duty(store: Store, wait: timedelta = timedelta(0)) -> Iterator[None]:
    """Do the duty meanwhile, and check that it ends when it is told to."""
    stop = threading.Event()
    duty = pruning(store, Pruner(store, 120 * DAY, wait), DAY)
    thread = threading.Thread(target=duty, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()


def test_what_is_due_is_done_once(old: Store) -> None:
    """A key that is old goes, and the next run is a day later."""
    with on_duty(old):
        wait_until(lambda: keys(old) == [], what="the key to be forgotten")
        wait_until(lambda: not is_due(old, DAY), what="the run to end")


def test_it_ends_while_it_waits(old: Store) -> None:
    """A deployment does not wait for the pruner's wait, and loses nothing."""
    with on_duty(old, timedelta(hours=1)):
        wait_until(lambda: not is_due(old, DAY), what="the watermark to be raised")
    assert keys(old) == ["old"]


def test_a_database_that_fails_is_waited_for(old: Store, caplog: pytest.LogCaptureFixture) -> None:
    """The failure is said, and the duty done once it is over."""
    with old.writing() as connection:
        connection.execute(text("ALTER TABLE job_watermark RENAME TO elsewhere"))
    with on_duty(old):
        wait_until(lambda: "prune.failed" in caplog.text, what="a word about it")
        with old.writing() as connection:
            connection.execute(text("ALTER TABLE elsewhere RENAME TO job_watermark"))
        wait_until(lambda: keys(old) == [], what="the key to be forgotten")
