"""`jobsctl seed`: what is written, and what can be sent then?"""

from __future__ import annotations

from .chats import write_chats
from .credit import account_id, write_usages
from .mail import TEMPLATE, event_of, write_mail
from .resources import write_resources


def seed(
    *,
    accounts: int = 10,
    usages: int = 1000,
    balance: int = 1_000_000,
    task: str = "t1",
    users: int = 10,
    chats: int = 10,
    resources: int = 10,
) -> str:
    """Write sample data for every actor; rows that are there already stay as they are.

    Parameters:
        accounts: how many, at least 1. Defaults to 10.
        usages: how many that `charge_credit` can charge, at least 1. Defaults to 1,000.
        balance: credits of each new account, at least 0. Defaults to 1,000,000.
        task: the `task_id` of the usages. Defaults to `t1`.
        users: how many, at least 1, each with an event to write to them about. Defaults to 10.
        chats: how many, at least 1. Defaults to 10.
        resources: how many, at least 1. Defaults to 10.

    Returns:
        Lines for a person: what there is, how much of it is new, and what can be sent.

    Raises:
        ValueError: a number is too small; nothing is written.
    """
    for name, value, least in (
        ("accounts", accounts, 1),
        ("usages", usages, 1),
        ("balance", balance, 0),
        ("users", users, 1),
        ("chats", chats, 1),
        ("resources", resources, 1),
    ):
        if value < least:
            raise ValueError(f"expected --{name} to be at least {least}, got: {value}; choose more")
    new_accounts, new_usages = write_usages(accounts=accounts, usages=usages, balance=balance, task=task)
    new_users = write_mail(_numbered("user", users))
    new_chats = write_chats(_numbered("chat", chats))
    new_resources = write_resources(_numbered("resource", resources))
    return (
        f"accounts   {account_id(1)} to {account_id(accounts)}: {new_accounts:,} new, {balance:,} credits\n"
        f"usages     task {task}, messages m1 to m{usages}: {new_usages:,} new\n"
        f"users      user-1 to user-{users}, each with an event: {new_users:,} new\n"
        f"chats      chat-1 to chat-{chats}: {new_chats:,} new\n"
        f"resources  resource-1 to resource-{resources}, version 1: {new_resources:,} new\n"
        f"to try     jobsctl send charge_credit {task} m1\n"
        f"           jobsctl send send_email user-1 {TEMPLATE} {event_of('user-1')}\n"
        "           jobsctl send summarize_chat chat-1 2\n"
        "           jobsctl send index_resource resource-1 1"
    )


def _numbered(what: str, count: int) -> list[str]:
    return [f"{what}-{number}" for number in range(1, count + 1)]
