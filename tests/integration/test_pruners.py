"""Several pruners share the work, and none has to end in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text

from middleware.effects.pruning import Pruned, Pruner
from middleware.store import Store

from .keyed_jobs import keys
from .old_rows import KEEP, attempt, mark, prune, spend


def test_several_pruners_share_the_work(store: Store, small_pieces: None) -> None:
    """Each row is deleted once, and none of them fails or waits for ever."""
    spend(store, {f"old:{number}": 2 * KEEP for number in range(1500)})
    for number in range(30):
        attempt(store, f"paid:{number}", 1, "confirmed", 2 * KEEP)
    done: list[Pruned | BaseException] = []
    ready = threading.Barrier(4)

    def work() -> None:
        ready.wait(20)
        try:
            done.append(prune(store))
        except BaseException as error:
            done.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = [each for each in done if isinstance(each, Pruned)]
    assert len(found) == 4, done
    assert sum(each.keys for each in found) == 1500
    assert sum(each.attempts for each in found) == 30
    assert keys(store) == []


def test_a_pruner_passes_by_rows_that_another_one_deletes(postgresql: Store) -> None:
    """It waits for nobody's transaction."""
    spend(postgresql, {"a": 2 * KEEP, "b": 2 * KEEP})
    with postgresql.engine.begin() as other:
        other.execute(text("DELETE FROM job_ledger WHERE key = 'a'"))
        assert prune(postgresql).keys == 1
    assert keys(postgresql) == []


@pytest.fixture
def interrupted(store: Store, small_pieces: None) -> Iterator[threading.Event]:
    """An event that is set when the first piece of a thousand rows is deleted."""
    spend(store, {f"old:{number}": 2 * KEEP for number in range(1000)})
    stop = threading.Event()

    def deleted(_c: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("DELETE FROM job_ledger"):
            stop.set()

    event.listen(Engine, "after_cursor_execute", deleted)
    yield stop
    event.remove(Engine, "after_cursor_execute", deleted)


def test_an_interrupted_run_keeps_what_it_did(store: Store, interrupted: threading.Event) -> None:
    """It ends after the piece; the next one does the rest, and only then is the ledger called pruned."""
    pruned = Pruner(store, KEEP, timedelta(0), rest=0.0).run(interrupted)
    assert 0 < pruned.keys < 1000
    assert not pruned.is_complete
    assert len(keys(store)) == 1000 - pruned.keys
    assert mark(store).pruned_at is None
    assert prune(store).keys == 1000 - pruned.keys
    assert mark(store).pruned_at is not None
