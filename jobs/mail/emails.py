"""Tell a user by email what happened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from string import Template
from typing import Any, Final

import dramatiq
from sqlalchemy import Table, select
from sqlalchemy.orm import Session

from middleware import Invalid, current_session

from ..models import Base
from ..settings import get_settings
from .mailboxes import mailbox, one_line, read_mailbox
from .smtp import deliver, read_server

_USERS: Final = Base.metadata.tables["users"]
_TEMPLATES: Final = Base.metadata.tables["email_templates"]
_EVENTS: Final = Base.metadata.tables["events"]

_POLICY: Final = SMTP.clone(cte_type="7bit")  # any server takes it, also one without 8BITMIME


# jobs: ignore[JOB202] the docstring says what may happen, and that both copies carry one Message-ID
@dramatiq.actor(queue_name="critical", idempotency_key="email:{user_id}:{template_id}:{event_id}")
def send_email(user_id: str, template_id: str, event_id: str) -> None:
    """Send a user the email about an event; a job that completed is not repeated.

    It may still be sent twice: if the worker dies, the job runs into its time limit, or the connection to the
    mail server or to the database breaks, after the server has accepted the email and before the key is
    committed; or if the server accepts it and takes longer than JOBS_SMTP_TIMEOUT to say so, then once an
    attempt. All copies carry the same Message-ID, by which many mailboxes drop all but the first. This holds
    until effects outside the database have a mode of their own.

    The ledger's transaction, on SQLite the turn to write, is held while the server is talked to.

    Parameters:
        user_id: who gets it.
        template_id: what it says.
        event_id: what it is about.

    Raises:
        Invalid: one of the three is missing, they make no proper email, or the server refuses it for good.
        Retry: the server is not reached, or asks for another attempt.
    """
    settings, session = get_settings(), current_session()
    user = _read(session, _USERS, user_id)
    template = _read(session, _TEMPLATES, template_id)
    event = _read(session, _EVENTS, event_id)
    try:
        email = compose(
            sender=read_mailbox(settings.mail_from),
            recipient=mailbox(user.address, user.name),
            subject=template.subject,
            body=template.body,
            values={**_details(event), "name": user.name},
        )
        email["Message-ID"] = message_id(
            user_id, template_id, event_id, domain=read_mailbox(settings.mail_from).domain
        )
    except ValueError as error:
        raise Invalid(f"user {user_id!r}, template {template_id!r}, event {event_id!r}: {error}") from error
    deliver(email, read_server(settings.smtp_url), timeout_seconds=settings.smtp_timeout.total_seconds())


def compose(
    *, sender: Address, recipient: Address, subject: str, body: str, values: Mapping[str, Any]
) -> EmailMessage:
    """Return an email without its Message-ID.

    Parameters:
        sender: who it is from.
        recipient: whom it goes to.
        subject: a line in which `$words` stand for values.
        body: plain text with `$words`.
        values: by name.

    Raises:
        ValueError: a word has no value, or the email would not be what it seems to be.
    """
    email = EmailMessage(_POLICY)
    email["From"] = sender
    email["To"] = recipient
    email["Subject"] = one_line("the subject", _fill(subject, values))
    email["Date"] = datetime.now(UTC)
    email["Auto-Submitted"] = "auto-generated"  # asks absence notes not to answer: RFC 3834
    email.set_content(_fill(body, values))
    return email


def message_id(user_id: str, template_id: str, event_id: str, *, domain: str) -> str:
    """Return the Message-ID of the email that a job sends: the same whenever it is sent.

    >>> message_id("u1", "receipt", "e1", domain="example.com")
    '<46c1f93210bd12646aa2666dd1d89afd@example.com>'
    """
    job = json.dumps([user_id, template_id, event_id]).encode()
    return f"<{hashlib.sha256(job).hexdigest()[:32]}@{domain}>"


def _details(event: Any) -> dict[str, Any]:
    if not isinstance(event.details, dict):
        raise ValueError(f"expected the event's details to be values by name, got: {event.details!r}"[:200])
    return event.details


def _fill(text: str, values: Mapping[str, Any]) -> str:
    try:
        return Template(text).substitute(values)
    except KeyError as missing:
        raise ValueError(
            f"expected the event to have a value for ${missing.args[0]}, got: {', '.join(sorted(values))}"
        ) from None


def _read(session: Session, table: Table, id_: str) -> Any:
    row = session.execute(select(table).where(table.c.id == id_)).one_or_none()
    if row is None:
        raise Invalid(f"expected {table.name} to have a row {id_!r}, got: none")
    return row
