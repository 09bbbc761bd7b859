"""Users, a template, and an event for each user to be told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .. import store
from .inserting import insert_missing

TEMPLATE: Final = "receipt"
DOMAIN: Final = "example.com"
_NAMES: Final = ("Ada Lovelace", "Grace Hopper", "Edsger W. Dijkstra", "Zoë Müller", "Lovelace, Ada")
_BODY: Final = "Hello $name,\n\n$amount credits were charged for order $order.\n"


def write_mail(users: Sequence[str]) -> int:
    """Write users, their events and the template that are not there yet, and return how many users are new.

    Parameters:
        users: their ids, which are also the names of their mailboxes; each has the event `order-<id>`.
    """
    template = {"id": TEMPLATE, "subject": "Your order $order", "body": _BODY}
    rows = [
        {"id": each, "address": f"{each}@{DOMAIN}", "name": _NAMES[number % len(_NAMES)]}
        for number, each in enumerate(users)
    ]
    events = [
        {"id": event_of(each), "details": {"order": each, "amount": 1 + number % 5}}
        for number, each in enumerate(users)
    ]
    with store.engine.begin() as connection:
        insert_missing(connection, "email_templates", [template])
        insert_missing(connection, "events", events)
        return insert_missing(connection, "users", rows)


def event_of(user: str) -> str:
    """Return the event that a sample user is to be told of."""
    return f"order-{user}"
