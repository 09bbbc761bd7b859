"""Tell a user by email what happened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from string import Template
from typing import Any, Final

import dramatiq
from sqlalchemy import Connection, Table, select

from middleware import Invalid, current_key

from .. import store
from ..models import Base
from ..settings import get_settings
from .mailboxes import mailbox, one_line, read_mailbox
from .smtp import deliver, read_server

_USERS: Final = Base.metadata.tables["users"]
_TEMPLATES: Final = Base.metadata.tables["email_templates"]
_EVENTS: Final = Base.metadata.tables["events"]

_POLICY: Final = SMTP.clone(cte_type="7bit")  # any server takes it, also one without 8BITMIME


@dramatiq.actor(
    queue_name="critical", idempotency_key="email:{user_id}:{template_id}:{event_id}", effect="external"
)
def send_email(user_id: str, template_id: str, event_id: str) -> None:
    """Send a user the email about an event, once.

    What the mail server refuses, or was not handed, is tried again. If the worker dies, or the server does
    not say in time whether it has accepted the email, nobody can know: SMTP has no question for that. The job
    then is a dead letter of kind `unknown_outcome` and not repeated; whoever looks into it finds the email's
    Message-ID, which is made of the key, in the server's log or not.

    Parameters:
        user_id: who gets it.
        template_id: what it says.
        event_id: what it is about.

    Raises:
        Invalid: one of the three is missing, they make no proper email, or the server refuses it for good.
        NotDone: the server is not reached, or asks for another attempt.
        Retry: the email was handed over and the server's answer is missing: it may have been accepted.
    """
    settings = get_settings()
    with store.engine.connect() as connection:
        user = _read(connection, _USERS, user_id)
        template = _read(connection, _TEMPLATES, template_id)
        event = _read(connection, _EVENTS, event_id)
    sender, server = read_mailbox(settings.mail_from), read_server(settings.smtp_url)
    try:
        email = compose(
            sender=sender,
            recipient=mailbox(user.address, user.name),
            subject=template.subject,
            body=template.body,
            values={**_details(event), "name": user.name},
        )
    except ValueError as error:
        raise Invalid(f"user {user_id!r}, template {template_id!r}, event {event_id!r}: {error}") from error
    email["Message-ID"] = message_id(current_key(), domain=sender.domain)
    deliver(email, server, timeout_seconds=settings.smtp_timeout.total_seconds())


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


def message_id(key: str, *, domain: str) -> str:
    """Return the Message-ID of the email that a job sends: the same whenever it is sent.

    Parameters:
        key: the job's idempotency key.
        domain: the sender's.

    >>> message_id("email:u1:receipt:e1", domain="example.com")
    '<9e0f4c86c17f0334658f2064165fd48a@example.com>'
    """
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{domain}>"


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


def _read(connection: Connection, table: Table, id_: str) -> Any:
    row = connection.execute(select(table).where(table.c.id == id_)).one_or_none()
    if row is None:
        raise Invalid(f"expected {table.name} to have a row {id_!r}, got: none")
    return row
