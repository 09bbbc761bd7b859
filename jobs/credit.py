"""Charge what was used, once."""

from __future__ import annotations

import dramatiq
from sqlalchemy import Connection, bindparam, insert, select, update

from middleware import BusinessReject, Invalid, current_session

from .models import Base

_accounts = Base.metadata.tables["accounts"]
_usages = Base.metadata.tables["usages"]
_entries = Base.metadata.tables["credit_entries"]

# Two statements on tables and the session's connection, no ORM: this is the path that carries the load. A
# reference travelled in the message; what it stands for is read here and now, in the statement that needs it.
_USED = select(
    bindparam("reference", type_=_entries.c.reference.type), _usages.c.account_id, _usages.c.cost
).where(_usages.c.task_id == bindparam("task_id"), _usages.c.message_id == bindparam("message_id"))
_WRITE_ENTRY = (
    insert(_entries)
    .from_select(["reference", "account_id", "amount"], _USED, include_defaults=False)
    .returning(_entries.c.account_id, _entries.c.amount)
)
# Last, because it locks the account's row until the commit.
_TAKE_CREDIT = (
    update(_accounts)
    .where(_accounts.c.id == bindparam("account_id"), _accounts.c.balance >= bindparam("amount"))
    .values(balance=_accounts.c.balance - bindparam("amount"))
    .returning(_accounts.c.id)
)


@dramatiq.actor(queue_name="critical", idempotency_key="credit:{task_id}:{message_id}")
def charge_credit(task_id: str, message_id: str) -> None:
    """Charge the account for a usage: the entry, the balance and the ledger row are one commit.

    Parameters:
        task_id: with `message_id` names the usage.
        message_id: see `task_id`.

    Raises:
        Invalid: nobody recorded such a usage.
        BusinessReject: the account is missing or its balance is too low; nothing is charged.
    """
    charge(current_session().connection(), task_id, message_id)


def charge(connection: Connection, task_id: str, message_id: str) -> None:
    """Write the entry of a usage and take it from the balance, in the connection's transaction.

    Parameters:
        connection: of the transaction; whoever began it commits.
        task_id: with `message_id` names the usage.
        message_id: see `task_id`.

    Raises:
        Invalid: nobody recorded such a usage.
        BusinessReject: the account is missing or its balance is too low; roll back then.
    """
    usage = {"task_id": task_id, "message_id": message_id, "reference": reference(task_id, message_id)}
    entry = connection.execute(_WRITE_ENTRY, usage).one_or_none()
    if entry is None:
        raise Invalid(f"no usage is recorded for task {task_id!r}, message {message_id!r}")
    taken = {"account_id": entry.account_id, "amount": entry.amount}
    if connection.execute(_TAKE_CREDIT, taken).one_or_none() is None:
        raise BusinessReject(f"insufficient credit: account {entry.account_id!r} cannot pay {entry.amount}")


def reference(task_id: str, message_id: str) -> str:
    """Return what a credit entry calls its usage, `task_id:message_id`, unique for the pair.

    >>> reference("t1", "m1"), reference("a:b", "c")
    ('t1:m1', 'a%3Ab:c')
    """
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in (task_id, message_id))
