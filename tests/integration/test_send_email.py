"""Does the right email leave once, with the same Message-ID however often it is tried?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dramatiq import Actor

from jobs import send_email
from jobs.mail import emails
from jobs.mail.emails import message_id
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from ..mail_server import BREAK_OFF, MailServer, serve_mail
from .application import Configure, redeclare
from .keyed_jobs import KeyedJobs, keys
from .mail_rows import write_mail


@pytest.fixture
def server(configure: Configure) -> Iterator[MailServer]:
    """The mail server that the settings name."""
    with serve_mail() as server:
        configure(smtp_url=f"smtp://{server.address}", mail_from="The Shop <shop@example.com>")
        yield server


@pytest.fixture
def actor(sync_jobs: KeyedJobs, monkeypatch: pytest.MonkeyPatch) -> Actor[..., Any]:
    """The actor on the test's database, with user u, template t and event e."""
    monkeypatch.setattr(emails, "store", sync_jobs.store)
    write_mail(sync_jobs.store)
    return redeclare(sync_jobs, send_email)


def test_an_email_is_sent_once(sync_jobs: KeyedJobs, actor: Actor[..., Any], server: MailServer) -> None:
    """The server accepts one email with the template's text and the event's values, and no second one."""
    assert sync_jobs.run(actor, "u", "t", "e").outcome is COMPLETED
    assert sync_jobs.run(actor, "u", "t", "e").outcome is DUPLICATE
    (email,) = server.accepted
    assert server.recipients == ["ada@example.com"]
    assert str(email["From"]) == "The Shop <shop@example.com>"
    assert str(email["To"]) == "Ada Lovelace <ada@example.com>"
    assert str(email["Subject"]) == "Order 7"
    assert email["Date"].datetime.tzinfo is not None
    assert email["Auto-Submitted"] == "auto-generated"
    assert email.get_content() == "Hello Ada Lovelace, that makes 3 credits.\r\n"
    assert email["Message-ID"] == message_id("email:u:t:e", domain="example.com")
    assert keys(sync_jobs.store) == ["email:u:t:e"]


def test_a_repeated_email_has_the_same_message_id(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], server: MailServer
) -> None:
    """An email that somebody sends anew, because the first is said to be lost, is known for a copy."""
    sync_jobs.run(actor, "u", "t", "e")
    with sync_jobs.store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM job_ledger")
        connection.exec_driver_sql("DELETE FROM job_intents")
    sync_jobs.run(actor, "u", "t", "e")
    first, second = server.accepted
    assert first["Message-ID"] == second["Message-ID"]


def test_a_refused_email_may_be_sent_later(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], server: MailServer
) -> None:
    """A refusal spends no key: the next job sends the email."""
    server.answers["RCPT"] = ["451 greylisted"]
    outcome = sync_jobs.run(actor, "u", "t", "e").outcome
    assert isinstance(outcome, Dead)
    assert outcome.kind == "transient"
    assert keys(sync_jobs.store) == []
    assert sync_jobs.run(actor, "u", "t", "e").outcome is COMPLETED
    assert len(server.accepted) == 1


def test_an_email_whose_answer_is_missing_is_not_sent_again(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], server: MailServer
) -> None:
    """The text was handed over and the connection broke: it may be on its way, and nobody sends another."""
    server.answers["DATA"] = [BREAK_OFF]
    for _ in range(2):
        outcome = sync_jobs.run(actor, "u", "t", "e").outcome
        assert isinstance(outcome, Dead)
        assert outcome.kind == "unknown_outcome"
    assert (server.sessions, keys(sync_jobs.store)) == (1, [])


def test_no_connection_is_held_while_the_server_is_talked_to(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], server: MailServer
) -> None:
    """Reading what to say and confirming that it was said are two short steps."""
    held: list[int] = []
    pool: Any = sync_jobs.store.engine.pool
    server.meanwhile = lambda: held.append(pool.checkedout())
    assert sync_jobs.run(actor, "u", "t", "e").outcome is COMPLETED
    assert held == [0]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ({"name": "Ada\r\nBcc: eve@example.com"}, "expected a name to be one line"),
        ({"name": "Ada\n"}, "expected a name to be one line"),
        ({"order": "7\nBcc: eve@example.com"}, "expected the subject to be one line"),
        (
            {"address": "ada@example.com\r\nRCPT TO:<eve@example.com>"},
            "expected an address to be name@domain",
        ),
        ({"address": "ada@example.com, eve@example.com"}, "expected an address to be name@domain"),
        ({"address": "ada"}, "expected an address to be name@domain"),
        ({"address": ""}, "expected an address to be name@domain"),
        (
            {"subject": "$missing"},
            "expected the event to have a value for $missing, got: amount, name, order",
        ),
        ({"subject": "100 $"}, "Invalid placeholder"),
        ({"details": "[]"}, "expected the event's details to be values by name, got: []"),
    ],
)
def test_what_makes_no_proper_email_is_invalid(
    sync_jobs: KeyedJobs, monkeypatch: pytest.MonkeyPatch, server: MailServer, rows: dict[str, str], why: str
) -> None:
    """A line break in a header, a bad address or a missing value is never retried, and nobody is called."""
    monkeypatch.setattr(emails, "store", sync_jobs.store)
    write_mail(sync_jobs.store, **rows)
    outcome = sync_jobs.run(redeclare(sync_jobs, send_email), "u", "t", "e").outcome
    assert isinstance(outcome, Dead)
    assert outcome.kind == "invalid"
    assert why in str(outcome.error)
    assert "user 'u', template 't', event 'e'" in str(outcome.error)
    assert server.sessions == 0


@pytest.mark.parametrize(
    ("ids", "missing"),
    [
        (("x", "t", "e"), "expected users to have a row 'x', got: none"),
        (("u", "x", "e"), "expected email_templates to have a row 'x', got: none"),
        (("u", "t", "x"), "expected events to have a row 'x', got: none"),
    ],
)
def test_what_is_missing_is_invalid(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], server: MailServer, ids: tuple[str, ...], missing: str
) -> None:
    """An id that names nothing is never retried, and is named."""
    outcome = sync_jobs.run(actor, *ids).outcome
    assert isinstance(outcome, Dead)
    assert (outcome.kind, str(outcome.error)) == ("invalid", missing)
    assert server.sessions == 0
