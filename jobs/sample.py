"""What is there to try the application with?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from . import store
from .models import Base

_BATCH: Final = 1000
_ACCOUNTS: Final = Base.metadata.tables["accounts"]
_USAGES: Final = Base.metadata.tables["usages"]


def seed(*, accounts: int = 10, usages: int = 1000, balance: int = 1_000_000, task: str = "t1") -> str:
    """Write sample accounts and usages to be charged; rows that are there already stay as they are."""
    for name, value, least in (("accounts", accounts, 1), ("usages", usages, 1), ("balance", balance, 0)):
        if value < least:
            raise ValueError(f"expected --{name} to be at least {least}, got: {value}; choose more")
    new_accounts, new_usages = write_sample(accounts=accounts, usages=usages, balance=balance, task=task)
    return (
        f"accounts   {account_id(1)} to {account_id(accounts)}: {new_accounts:,} new, {balance:,} credits\n"
        f"usages     task {task}, messages m1 to m{usages}: {new_usages:,} new\n"
        f"to charge  jobsctl send charge_credit {task} m1"
    )


def write_sample(
    *, accounts: int, usages: int, balance: int, task: str, owner: str = "account"
) -> tuple[int, int]:
    """Write accounts and usages that are not there yet.

    Parameters:
        accounts: how many accounts, `<owner>-1` and on.
        usages: how many usages, message ids `m1` and on; they cost 1 to 5 and go round the accounts.
        balance: credits of each new account.
        task: the usages' task id.
        owner: what the accounts' ids begin with. Defaults to `account`.

    Returns:
        How many accounts and how many usages are new.
    """
    ids = [account_id(number, owner) for number in range(1, accounts + 1)]
    with store.engine.begin() as connection:
        new_accounts = _insert(connection, _ACCOUNTS, ({"id": each, "balance": balance} for each in ids))
        new_usages = _insert(connection, _USAGES, _usages(task, usages, ids))
    return new_accounts, new_usages


def account_id(number: int, owner: str = "account") -> str:
    """Return the id of a sample account, counted from 1."""
    return f"{owner}-{number}"


def _usages(task: str, count: int, accounts: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for number in range(1, count + 1):
        yield {
            "task_id": task,
            "message_id": f"m{number}",
            "account_id": accounts[(number - 1) % len(accounts)],
            "cost": 1 + number % 5,
        }


def _insert(connection: Connection, table: Table, rows: Iterator[Mapping[str, Any]]) -> int:
    """Insert what is not there yet, and return how many rows that were."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).on_conflict_do_nothing().returning(table.primary_key.columns[0])
    new = 0
    while batch := list(itertools.islice(rows, _BATCH)):
        new += len(connection.execute(statement, batch).all())
    return new
