"""Do writers without a key take turns with those that have one?"""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from middleware import Store

from .keyed_jobs import entries

ENTER = text("INSERT INTO credit_entries (reference, account_id, amount) VALUES ('r', 'a', 1)")


def test_a_block_is_one_commit(store: Store) -> None:
    """What the block writes is there at its end, and is not if it raises."""

    def fail() -> None:
        with store.writing() as connection:
            connection.execute(ENTER)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert entries(store) == []
    with store.writing() as connection:
        connection.execute(ENTER)
        assert entries(store) == []
    assert entries(store) == ["r"]


def test_sqlite_writers_take_turns(sqlite: Store) -> None:
    """A block waits for the turn as long as it may, and keeps it to its end."""
    assert sqlite.writers.acquire(1)
    with pytest.raises(TimeoutError, match="a turn to write"), sqlite.writing(timedelta(milliseconds=10)):
        pass
    sqlite.writers.release()
    with sqlite.writing():
        assert not sqlite.writers.acquire(0.01)
    assert sqlite.writers.acquire(1)
    sqlite.writers.release()
