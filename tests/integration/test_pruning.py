"""Pruning forgets what is old and nothing else, in pieces, by any number of pruners, however they end."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from middleware.effects import pieces
from middleware.effects.pruning import Pruned, Pruner, _delete_attempts, _delete_keys, is_due
from middleware.store import Store, in_utc, job_watermark

from ..waiting import stays, wait_until
from .keyed_jobs import keys, rows
from .old_rows import DAY, HOUR, KEEP, attempt, mark, prune, set_mark, spend


def test_old_rows_go_and_young_ones_stay(store: Store, small_pieces: None) -> None:
    """Wherever they lie in the table; the margin for clocks that differ is kept on top."""
    old = {f"old:{number}": KEEP + 2 * HOUR for number in range(1000)}
    young = {f"young:{number}": KEEP + timedelta(minutes=55) for number in range(1000)}
    spend(store, dict(sorted({**old, **young}.items(), key=lambda each: each[0].partition(":")[2])))
    pruned = prune(store)
    assert (pruned.keys, pruned.attempts, pruned.is_complete) == (1000, 0, True)
    assert set(keys(store)) == set(young)
    assert abs(pruned.before - (datetime.now(UTC) - KEEP - HOUR)) < timedelta(minutes=1)
    assert prune(store).keys == 0


def test_places_are_named_on_postgresql_13(
    postgresql: Store, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ranges of pages the same rows are found."""
    monkeypatch.setattr(pieces, "_HAS_RANGES", (99,))
    test_old_rows_go_and_young_ones_stay(postgresql, small_pieces)


FILL: Final = (
    "INSERT INTO job_ledger (key, args_hash, actor, message_id) "
    "SELECT 'k' || n, '', 'act', 'm' FROM generate_series(1, 50000) n",
    "INSERT INTO job_intents "
    "(key, fence, state, args_hash, actor, message_id, holder, began_at, lease_until, ended_at) "
    "SELECT 'k' || n, 1, 'confirmed', '', 'act', 'm', 'h', now(), now(), now() "
    "FROM generate_series(1, 9000) n",
    "ANALYZE job_ledger, job_intents",
)


def test_a_piece_is_found_without_reading_the_rest(postgresql: Store) -> None:
    """PostgreSQL reads the pages of the piece alone, in either form, and deletes by place or by key."""
    with postgresql.engine.begin() as connection:
        for statement in FILL:
            connection.exec_driver_sql(statement)
        for ranges in ((14,), (99,)):
            for deleting in (_delete_keys, _delete_attempts):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(pieces, "_HAS_RANGES", ranges)
                    piece = deleting(connection, 0, 128, datetime.now(UTC))
                compiled = piece.compile(connection, compile_kwargs={"literal_binds": True})
                plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {compiled}").scalars())
                whole = set(re.findall(r"Seq Scan on (\w+ ?\w*)", plan))
                assert whole <= {"job_intents unsettled", "job_intents other"}, plan  # while that is small
                assert ("Tid Range Scan" in plan) is (ranges == (14,)), plan


def test_the_watermark_is_there_before_anything_is_deleted(store: Store) -> None:
    """Others see it, with the moment from which the wait counts, while every row is still there."""
    spend(store, {"old": KEEP + DAY})
    stop = threading.Event()
    seen: list[Any] = []

    def tell(before: datetime, left: timedelta) -> None:
        seen.extend((keys(store), mark(store), left))
        stop.set()

    pruned = Pruner(store, KEEP, HOUR).run(stop, tell)
    there, row, left = seen
    assert there == keys(store) == ["old"]
    assert abs(in_utc(row.watermark) - (datetime.now(UTC) - KEEP)) < timedelta(minutes=1)
    assert abs(in_utc(row.raised_at) - datetime.now(UTC)) < timedelta(minutes=1)
    assert row.pruned_at is None
    assert HOUR - timedelta(minutes=1) < left <= HOUR
    assert pruned == Pruned(in_utc(row.watermark) - HOUR)


def test_nothing_is_deleted_during_the_wait(store: Store) -> None:
    """Raising the watermark is not enough: others have to have heard of it."""
    spend(store, {"old": KEEP + DAY})
    stop = threading.Event()
    thread = threading.Thread(target=lambda: Pruner(store, KEEP, HOUR).run(stop))
    thread.start()
    wait_until(lambda: mark(store) is not None, what="the watermark")
    stays(lambda: keys(store) == ["old"], what="the key", seconds=0.5)
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
    assert keys(store) == ["old"]


@pytest.mark.parametrize(
    ("raised", "least", "most"),
    [
        (timedelta(minutes=10), timedelta(minutes=49), timedelta(minutes=50)),
        (2 * HOUR, -2 * HOUR, timedelta(0)),
        (None, timedelta(minutes=59), HOUR),
    ],
    ids=["under way", "over", "never seen"],
)
def test_a_wait_that_was_cut_off_goes_on(
    store: Store, raised: timedelta | None, least: timedelta, most: timedelta
) -> None:
    """It counts from when the watermark is known to be committed; that is not raised for minutes."""
    spend(store, {"old": KEEP + DAY})
    set_mark(store, KEEP + timedelta(minutes=30), raised)
    watermark = mark(store).watermark
    stop = threading.Event()
    found: list[timedelta] = []

    def tell(before: datetime, left: timedelta) -> None:
        found.append(left)
        if left > timedelta(0):
            stop.set()

    pruned = Pruner(store, KEEP, HOUR).run(stop, tell)
    assert least <= found[0] <= most
    assert mark(store).watermark == watermark
    assert pruned.is_complete is (most == timedelta(0))
    assert keys(store) == ([] if most == timedelta(0) else ["old"])


def test_the_watermark_is_never_lowered(store: Store) -> None:
    """Whoever keeps keys for longer deletes less, and takes nothing back."""
    spend(store, {"a": 100 * DAY, "b": 130 * DAY, "c": 200 * DAY})
    prune(store, 190 * DAY)
    assert keys(store) == ["a", "b"]
    prune(store, 120 * DAY)
    raised = mark(store).watermark
    assert prune(store, 150 * DAY).before < in_utc(raised)
    assert mark(store).watermark == raised
    assert keys(store) == ["a"]


@pytest.mark.parametrize("state", ["held", "unknown"])
def test_keys_with_an_open_attempt_are_kept(store: Store, state: str) -> None:
    """Neither the attempt nor another of its key, nor the key's row goes while one is not settled."""
    spend(store, {"open": 2 * KEEP, "settled": 2 * KEEP})
    attempt(store, "open", 1, "released", 2 * KEEP)
    attempt(store, "open", 2, state, 2 * KEEP)
    attempt(store, "open", 3, "confirmed", 2 * KEEP)
    attempt(store, "settled", 1, "released", 2 * KEEP)
    attempt(store, "settled", 2, "confirmed", 2 * KEEP)
    foreseen = Pruner(store, KEEP, HOUR).count()
    assert (foreseen.keys, foreseen.attempts) == (1, 2)
    pruned = prune(store)
    assert (pruned.keys, pruned.attempts) == (1, 2)
    assert keys(store) == ["open"]
    assert rows(store.engine, "SELECT fence FROM job_intents WHERE key = 'open' ORDER BY fence") == [1, 2, 3]


def test_a_keys_attempts_go_together_or_not_at_all(store: Store, small_pieces: None) -> None:
    """One that is young keeps all: what is there of a key is proof only if nothing of it is gone."""
    for number in range(60):
        attempt(store, f"old:{number}", 1, "released", 2 * KEEP)
        attempt(store, f"mixed:{number}", 1, "released", 2 * KEEP)
    for number in range(60):
        attempt(store, f"old:{number}", 2, "released", KEEP + DAY)
        attempt(store, f"mixed:{number}", 2, "released", DAY)
    assert prune(store).attempts == 120
    left = rows(store.engine, "SELECT key, count(*) FROM job_intents GROUP BY key")
    assert sorted(left) == sorted((f"mixed:{number}", 2) for number in range(60))


def test_pruning_is_due_once_a_day(store: Store) -> None:
    """At once if it never was done, an hour after one that was cut off, and a day after one that was not."""
    assert is_due(store, DAY)
    set_mark(store, KEEP, timedelta(minutes=59))
    assert not is_due(store, DAY)
    set_mark(store, KEEP, timedelta(minutes=61))
    assert is_due(store, DAY)
    prune(store)
    assert not is_due(store, DAY)
    assert is_due(store, timedelta(0))
    with store.writing() as connection:
        ago = datetime.now(UTC) - DAY
        connection.execute(job_watermark.update().values(pruned_at=ago, raised_at=ago))
    assert is_due(store, DAY)


def test_there_is_one_watermark(store: Store) -> None:
    """The table takes no second row, which would leave open which of them holds."""
    set_mark(store, KEEP, None)
    with pytest.raises(Exception, match="ck_job_watermark_id"), store.writing() as connection:
        connection.execute(job_watermark.insert().values(id=2, watermark=datetime.now(UTC)))
