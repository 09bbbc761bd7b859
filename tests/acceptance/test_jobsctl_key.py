"""Does `jobsctl key show` tell a person, and a program, what is known about a key?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from jobs import charge_credit
from middleware import Store
from middleware.effects.entry import Entry
from middleware.effects.intents import Intents, Taken
from middleware.effects.outbox.row import OutboxRow
from middleware.store import job_watermark
from middleware.transport.publication import READY, Publication

from ..mail_server import BREAK_OFF, serve_mail
from .commands import embedded, fail, jobsctl, succeed
from .deployment import Deployment

pytestmark = pytest.mark.slow  # a process for each command

KEY = "email:user-1:receipt:order-user-1"
EMAIL = ("send", "send_email", "user-1", "receipt", "order-user-1")


@pytest.fixture
def seeded(tmp_path: Path) -> dict[str, str]:
    """Settings of an embedded application with a sample."""
    settings = embedded(tmp_path) | {"JOBS_MAX_RETRIES": "1", "JOBS_MIN_BACKOFF": "50ms"}
    succeed("migrate", settings=settings)
    succeed("seed", settings=settings)
    return settings


def shown(settings: dict[str, str], key: str = KEY) -> dict[str, Any]:
    """Return what a program is told."""
    found: dict[str, Any] = json.loads(succeed("key", "show", key, "--json", settings=settings))
    return found


def test_a_confirmed_effect(seeded: dict[str, str]) -> None:
    """The commit with actor, message and time; each attempt with its state, its times and why it ended."""
    with serve_mail() as server:
        server.answers["RCPT"] = ["451 greylisted"]
        succeed(*EMAIL, settings=seeded | {"JOBS_SMTP_URL": f"smtp://{server.address}"})
    text = succeed("key", "show", KEY, settings=seeded)
    assert text.startswith(f"key       {KEY}\nspent     20")
    assert "by send_email, message " in text
    assert "attempt 1 released" in text
    assert "451 greylisted" in text
    assert "attempt 2 confirmed" in text
    found = shown(seeded)
    first, second = found["attempts"]
    assert found["commit"]["message_id"] == first["message_id"] == second["message_id"]
    assert (first["state"], first["number"], second["state"]) == ("released", 1, "confirmed")
    assert first["began_at"] <= first["asked_at"] <= first["ended_at"] <= second["began_at"]
    assert (second["lease_until"], second["reason"], second["result"]) == (None, None, None)


def test_an_unknown_outcome(seeded: dict[str, str]) -> None:
    """A person is told that the provider has to be looked at, and why nobody knows."""
    with serve_mail() as server:
        server.answers["DATA"] = [BREAK_OFF]
        sent = jobsctl(*EMAIL, settings=seeded | {"JOBS_SMTP_URL": f"smtp://{server.address}"})
    assert sent.returncode == 1
    assert f"see `jobsctl key show {KEY}`" in sent.stdout
    text = succeed("key", "show", KEY, settings=seeded)
    assert "spent     no" in text
    assert "attempt 1 unknown" in text
    assert "SMTPServerDisconnected" in text
    assert text.endswith("The effect may have taken place or not: look this key up at the provider.\n")
    assert shown(seeded)["commit"] is None


def test_an_effect_in_the_database_is_its_commit(seeded: dict[str, str]) -> None:
    """A spent key without attempts is one of an effect in the database."""
    succeed("send", "charge_credit", "t1", "m1", settings=seeded)
    found = shown(seeded, "credit:t1:m1")
    assert found["commit"]["actor"] == "charge_credit"
    assert found["attempts"] == []
    assert succeed("key", "show", "credit:t1:m1", settings=seeded).count("\n") == 2


def test_a_key_that_nobody_knows(seeded: dict[str, str]) -> None:
    """It is said to be unspent; a program gets nulls."""
    assert "Nobody has spent this key" in succeed("key", "show", "no:such", settings=seeded)
    assert shown(seeded, "no:such")["forgotten_before"] is None
    store = Store(seeded["JOBS_DATABASE_URL"])
    with store.writing() as connection:
        moment = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
        connection.execute(job_watermark.insert().values(id=1, watermark=moment))
    store.dispose()
    text = succeed("key", "show", "no:such", settings=seeded)
    assert "not known of jobs from before 2026-01-02 03:04:00+00:00, whose keys are forgotten." in text
    assert shown(seeded, "no:such") == {
        "key": "no:such",
        "commit": None,
        "attempts": [],
        "sends": [],
        "forgotten_before": "2026-01-02 03:04:00+00:00",
    }


def test_attempts_under_way_and_abandoned(deployment: Deployment) -> None:
    """On PostgreSQL as well: an attempt that is held shows its lease, and whether it is over."""
    store = Store(deployment.database_url)
    entry = Entry("pay:1", b"x", "pay", "m1")
    assert isinstance(
        Intents(store, timedelta(hours=1)).take(entry, is_careful=True, prove=lambda *_: None), Taken
    )
    settings = deployment.environment()
    (attempt,) = shown(settings, "pay:1")["attempts"]
    assert attempt["is_alive"]
    assert attempt["began_at"] < attempt["lease_until"]
    assert attempt["began_at"].endswith("+00:00")
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE job_intents SET lease_until = began_at")
    text = succeed("key", "show", "pay:1", settings=settings)
    assert "which is over" in text
    assert "asked   never" in text
    store.dispose()


def test_a_job_that_waits_in_the_outbox(deployment: Deployment) -> None:
    """A job that was committed, and that the broker does not have yet, is shown with its time."""
    store = Store(deployment.database_url)
    message = charge_credit.message("t1", "m1")
    with Session(store.engine) as session, session.begin():
        session.add(OutboxRow(publication_of(message), 3_600_000, "a test"))
        session.add(OutboxRow(publication_of(charge_credit.message("t1", "m2")), None, "a test"))
    settings = deployment.environment()
    (send,) = shown(settings, "credit:t1:m1")["sends"]
    assert (send["actor"], send["message_id"], send["problem"]) == ("charge_credit", message.message_id, None)
    assert send["enqueued_at"] < send["due_at"]
    text = succeed("key", "show", "credit:t1:m1", settings=settings)
    assert f"to charge_credit, message {message.message_id}, waits in the outbox, due " in text
    store.dispose()


def test_a_row_that_is_no_message_hides_nothing(seeded: dict[str, str]) -> None:
    """Of what waits in the outbox, a row that nobody can read has no key; others are shown."""
    store = Store(seeded["JOBS_DATABASE_URL"])
    message = charge_credit.message("t1", "m1")
    with Session(store.engine) as session, session.begin():
        for body in (b"\x00 nonsense", b"[1]", b'{"args": 5}', message.encode()):
            publication = publication_of(message)._replace(body=body)
            session.add(OutboxRow(publication, None, "a test"))
    store.dispose()
    (send,) = shown(seeded, "credit:t1:m1")["sends"]
    assert send["message_id"] == message.message_id


def test_a_key_that_is_no_text(seeded: dict[str, str]) -> None:
    """Bytes that are no UTF-8 are refused in a line."""
    problem = fail(2, "key", "show", "mark:\udcff", settings=seeded)
    assert problem.startswith("jobsctl: expected KEY to be text in UTF-8, got: 'mark:\\udcff'")
    assert problem.count("\n") <= 1


def publication_of(message: Any) -> Publication:
    """Return what is published of a message."""
    return Publication(
        "critical", READY, message.encode(), message_id=message.message_id, actor=message.actor_name
    )


def test_without_tables_the_command_says_what_to_run(tmp_path: Path) -> None:
    """A database of a version before is named, with the way out."""
    assert "run `jobsctl migrate`" in fail(1, "key", "show", KEY, settings=embedded(tmp_path))
