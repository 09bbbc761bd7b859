"""Accounts, and usages to be charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import store
from .inserting import insert_missing


def write_usages(
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
        new_accounts = insert_missing(
            connection, "accounts", ({"id": each, "balance": balance} for each in ids)
        )
        new_usages = insert_missing(connection, "usages", _usages(task, usages, ids))
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
