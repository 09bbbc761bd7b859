"""What do the accounts say? Seeded and read with plain SQL, not through the code that is being tested."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from dramatiq import Message
from sqlalchemy import Engine, create_engine, text

_ACCOUNTS: Final = 20
_BALANCE: Final = 1_000_000
_COSTS: Final = 7
"""Different ones, so that a wrong one shows in the sums."""
_TASK: Final = "t"


class Books:
    """Accounts and the usages that they are to be charged for.

    Parameters:
        database_url: a migrated database.
        usages: how many usages to record, numbered from 0.
    """

    def __init__(self, database_url: str, usages: int) -> None:
        self._engine: Engine = create_engine(database_url)
        accounts = (
            "INSERT INTO accounts (id, balance) SELECT 'a' || n, :balance FROM generate_series(0, :last) n"
        )
        recorded = (
            "INSERT INTO usages (task_id, message_id, account_id, cost) "
            "SELECT :task, 'm' || n, 'a' || n % :accounts, 1 + n % :costs FROM generate_series(0, :last) n"
        )
        shape = {"task": _TASK, "accounts": _ACCOUNTS, "costs": _COSTS}
        with self._engine.begin() as connection:
            connection.execute(text(accounts), {"balance": _BALANCE, "last": _ACCOUNTS - 1})
            connection.execute(text(recorded), {**shape, "last": usages - 1})

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def count(self) -> int:
        """Return how many charges took place."""
        return int(self._rows("SELECT count(*) FROM credit_entries")[0][0])

    def charged(self) -> list[int]:
        """Return the numbers of the charged usages, each as often as it was charged."""
        references = [reference for (reference,) in self._rows("SELECT reference FROM credit_entries")]
        return sorted(int(reference.rpartition("m")[2]) for reference in references)

    def check(self, usages: Iterable[int]) -> None:
        """Check that these usages, and no others, were charged once each, and that the balances add up."""
        expected = sorted(usages)
        assert self.charged() == expected
        owed = Counter[str]()
        for number in expected:
            owed[f"a{number % _ACCOUNTS}"] += 1 + number % _COSTS
        balances = dict(self._rows("SELECT id, balance FROM accounts"))
        assert balances == {f"a{n}": _BALANCE - owed[f"a{n}"] for n in range(_ACCOUNTS)}

    def _rows(self, query: str) -> list[Any]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]


RecordUsages: TypeAlias = Callable[[int], Books]
"""The fixture of that name."""


def charge(number: int) -> Message[Any]:
    """Return the job that charges a usage."""
    return Message("critical", "charge_credit", (_TASK, f"m{number}"), {}, {})


def charges(count: int, *, twice: int) -> list[Message[Any]]:
    """Return the jobs that charge `count` usages, the first `twice` of them submitted twice, shuffled."""
    jobs = [charge(number) for number in [*range(count), *range(twice)]]
    random.Random(count).shuffle(jobs)
    return jobs
