"""One user, one template and one event, written with plain SQL."""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import text

from middleware import Store

_ROWS: Final = (
    "INSERT INTO users (id, address, name) VALUES ('u', :address, :name)",
    "INSERT INTO email_templates (id, subject, body) VALUES ('t', :subject, :body)",
    "INSERT INTO events (id, details) VALUES ('e', :details)",
)


def write_mail(
    store: Store,
    *,
    address: str = "ada@example.com",
    name: str = "Ada Lovelace",
    subject: str = "Order $order",
    body: str = "Hello $name, that makes $amount credits.\n",
    order: str = "7",
    details: str | None = None,
) -> None:
    """Write them; the event's details are `order` and an amount of 3, unless they are given as JSON."""
    if details is None:
        details = json.dumps({"order": order, "amount": 3})
    values = {"address": address, "name": name, "subject": subject, "body": body, "details": details}
    with store.engine.begin() as connection:
        for row in _ROWS:
            statement = text(row)
            connection.execute(statement, {each: values[each] for each in statement.compile().params})
