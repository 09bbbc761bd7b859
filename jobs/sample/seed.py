"""`jobsctl seed`: what is written, and what can be sent then?"""

from __future__ import annotations

from typing import Annotated

from typer import Option

from .chats import write_chats
from .credit import account_id, write_usages
from .mail import TEMPLATE, event_of, write_mail
from .resources import write_resources


def seed(
    *,
    accounts: Annotated[int, Option(help="How many accounts.")] = 10,
    usages: Annotated[int, Option(help="How many usages that charge_credit can charge.")] = 1000,
    balance: Annotated[int, Option(help="Credits of each new account.")] = 1_000_000,
    task: Annotated[str, Option(help="The task_id of the usages.")] = "t1",
    users: Annotated[int, Option(help="How many users, each with an event for send_email.")] = 10,
    chats: Annotated[int, Option(help="How many chats for summarize_chat.")] = 10,
    resources: Annotated[int, Option(help="How many resources for index_resource.")] = 10,
) -> str:
    """Write sample data for every actor; rows that are there already stay as they are.

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
        "           jobsctl send index_resource resource-1 1\n"
        "note       send_email needs a mail server that listens at JOBS_SMTP_URL"
    )


def _numbered(what: str, count: int) -> list[str]:
    return [f"{what}-{number}" for number in range(1, count + 1)]
