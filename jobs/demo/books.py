"""What does the database say? Read with plain SQL of its own, not through the code that wrote it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Books:
    """The tables at one moment.

    Attributes:
        balances: account → balance.
        usages: `task_id:message_id` → account and cost.
        entries: reference, account and amount of every credit entry.
        ledger: idempotency key → number of ledger rows.
    """

    balances: Mapping[str, int]
    usages: Mapping[str, tuple[str, int]]
    entries: tuple[tuple[str, str, int], ...]
    ledger: Counter[str]

    def charged(self) -> Counter[str]:
        """Return the sum of the entries' amounts per account."""
        sums: Counter[str] = Counter()
        for _, account, amount in self.entries:
            sums[account] += amount
        return sums


def read_books(file: Path) -> Books:
    """Read the books from the SQLite file."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:

        def rows(query: str) -> list[Any]:
            return database.execute(query).fetchall()

        usages = rows("SELECT task_id || ':' || message_id, account_id, cost FROM usages")
        return Books(
            balances=dict(rows("SELECT id, balance FROM accounts")),
            usages={reference: (account, cost) for reference, account, cost in usages},
            entries=tuple(rows("SELECT reference, account_id, amount FROM credit_entries")),
            ledger=Counter(key for (key,) in rows("SELECT key FROM job_ledger")),
        )
