"""What does the database say? Read with plain SQL of its own, not through the code that wrote it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.sample.resources import word_of


@dataclass(frozen=True)
class Books:
    """The tables at one moment.

    Attributes:
        balances: account → balance.
        usages: `task_id:message_id` → account and cost.
        entries: reference, account and amount of every credit entry.
        ledger: idempotency key → number of ledger rows.
        messages: chat → number of its messages.
        summaries: chat → position of the last message that its summary knows, and the summary.
        found: word that only one version of one resource has → resource and indexed version of all that the
            full-text index finds for it.
    """

    balances: Mapping[str, int]
    usages: Mapping[str, tuple[str, int]]
    entries: tuple[tuple[str, str, int], ...]
    ledger: Counter[str]
    messages: Mapping[str, int] = field(default_factory=dict)
    summaries: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    found: Mapping[str, list[tuple[str, int]]] = field(default_factory=dict)

    def charged(self) -> Counter[str]:
        """Return the sum of the entries' amounts per account."""
        sums: Counter[str] = Counter()
        for _, account, amount in self.entries:
            sums[account] += amount
        return sums


def read_books(file: Path) -> Books:
    """Read the books from the SQLite file."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:

        def rows(query: str, *values: str) -> list[Any]:
            return database.execute(query, values).fetchall()

        usages = rows("SELECT task_id || ':' || message_id, account_id, cost FROM usages")
        summaries = rows("SELECT chat_id, up_to, text FROM chat_summaries")
        resources = rows("SELECT id, version FROM resources")
        words = [word_of(each, version) for each, last in resources for version in range(1, last + 1)]
        return Books(
            balances=dict(rows("SELECT id, balance FROM accounts")),
            usages={reference: (account, cost) for reference, account, cost in usages},
            entries=tuple(rows("SELECT reference, account_id, amount FROM credit_entries")),
            ledger=Counter(key for (key,) in rows("SELECT key FROM job_ledger")),
            messages=dict(rows("SELECT chat_id, count(*) FROM chat_messages GROUP BY chat_id")),
            summaries={chat: (up_to, text) for chat, up_to, text in summaries},
            found={word: rows(_FIND, word) for word in words},
        )


_FIND = (
    "SELECT resource_id, version FROM resource_index "
    "WHERE id IN (SELECT rowid FROM resource_terms WHERE resource_terms MATCH ?)"
)
