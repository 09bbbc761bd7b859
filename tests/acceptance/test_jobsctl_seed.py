"""Do `jobsctl migrate` and `jobsctl seed` leave what the first job of every actor needs?"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from ..mail_server import serve_mail
from .commands import embedded, succeed

pytestmark = pytest.mark.slow  # a process for each command


def test_migrate_may_run_again(tmp_path: Path) -> None:
    """The first run makes the tables of both branches, the second finds them."""
    settings = embedded(tmp_path)
    first = succeed("migrate", settings=settings).splitlines()
    assert [line.split(":")[0] for line in first] == ["library", "application"]
    assert all("no tables →" in line for line in first)
    assert all(": is at " in line for line in succeed("migrate", settings=settings).splitlines())


def test_seed_writes_what_it_says(tmp_path: Path) -> None:
    """The sample has the accounts, usages and balances that were asked for, and names the next command."""
    settings = embedded(tmp_path)
    succeed("migrate", settings=settings)
    options = ["--accounts", "3", "--usages", "7", "--balance", "50", "--task", "t9"]
    options += ["--users", "2", "--chats", "4", "--resources", "5"]
    assert succeed("seed", *options, settings=settings).splitlines() == [
        "accounts   account-1 to account-3: 3 new, 50 credits",
        "usages     task t9, messages m1 to m7: 7 new",
        "users      user-1 to user-2, each with an event: 2 new",
        "chats      chat-1 to chat-4: 4 new",
        "resources  resource-1 to resource-5, version 1: 5 new",
        "to try     jobsctl send charge_credit t9 m1",
        "           jobsctl send send_email user-1 receipt order-user-1",
        "           jobsctl send summarize_chat chat-1 2",
        "           jobsctl send index_resource resource-1 1",
        "note       send_email needs a mail server that listens at JOBS_SMTP_URL",
    ]
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite3")) as database:
        accounts = database.execute("SELECT id, balance FROM accounts ORDER BY id").fetchall()
        usages = database.execute("SELECT message_id, account_id FROM usages ORDER BY message_id").fetchall()
    assert accounts == [("account-1", 50), ("account-2", 50), ("account-3", 50)]
    assert usages == [(f"m{number}", f"account-{(number - 1) % 3 + 1}") for number in range(1, 8)]


def test_what_seed_says_can_be_sent(tmp_path: Path) -> None:
    """Every command that it prints runs a job of another actor to its end."""
    settings = embedded(tmp_path)
    succeed("migrate", settings=settings)
    printed = succeed("seed", settings=settings)
    commands = [line.partition("jobsctl ")[2].split() for line in printed.splitlines() if "jobsctl" in line]
    assert {command[1] for command in commands} == {
        *("charge_credit", "send_email", "summarize_chat", "index_resource")
    }
    with serve_mail() as server:
        for command in commands:
            sent = succeed(*command, settings=settings | {"JOBS_SMTP_URL": f"smtp://{server.address}"})
            assert sent.endswith("completed on attempt 1\n")
    assert server.recipients == ["user-1@example.com"]


def test_the_help_is_for_whoever_types_it(tmp_path: Path) -> None:
    """`jobsctl seed --help` says what each option is and what it is by default, and nothing of Python."""
    text = succeed("seed", "--help", settings=embedded(tmp_path))
    for option in ("accounts", "usages", "balance", "task", "users", "chats", "resources"):
        assert re.search(rf"--{option} .* [A-Z][a-z_ ]+.*\. +\[default: \w+\]", text), option
    for word in ("Parameters", "Returns", "Raises", "ValueError"):
        assert word not in text


def test_seed_again_changes_nothing(postgresql_url: str) -> None:
    """A second run adds only what is missing: balances that were spent stay spent."""
    settings = {"JOBS_DATABASE_URL": postgresql_url}
    succeed("seed", "--accounts", "2", "--usages", "1500", settings=settings)
    engine = create_engine(postgresql_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE accounts SET balance = 7 WHERE id = 'account-1'"))
    output = succeed("seed", "--accounts", "3", "--usages", "1501", settings=settings)
    assert "account-1 to account-3: 1 new" in output
    assert "m1 to m1501: 1 new" in output
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT balance FROM accounts WHERE id = 'account-1'")) == 7
    engine.dispose()
