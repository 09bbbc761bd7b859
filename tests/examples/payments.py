"""An actor that charges a card at a payment provider, once: `dramatiq tests.examples.payments`.

The provider gets the job's idempotency key, and is asked by it about a charge whose reply never came.
PAYMENTS_URL is its address.
"""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import quote

import dramatiq
import httpx
from sqlalchemy import update

import jobs  # noqa: F401  # sets the broker
from jobs.models import Account
from middleware import Invalid, Reconciled, current_key, effect

_CHARGES: Final = f"{os.environ.get('PAYMENTS_URL', 'http://127.0.0.1:8026')}/charges"
_TIMEOUT_SECONDS: Final = 10.0


def find_charge(account_id: str, order_id: str, amount: int) -> Reconciled:
    """Ask the provider whether it has charged for a top-up whose job does not know."""
    reply = httpx.get(f"{_CHARGES}/{quote(current_key(), safe='')}", timeout=_TIMEOUT_SECONDS)
    if reply.status_code == httpx.codes.NOT_FOUND:
        return Reconciled.NOT_DONE
    reply.raise_for_status()
    _credit(account_id, amount, reply)
    return Reconciled.DONE


@dramatiq.actor(
    queue_name="critical",
    idempotency_key="top-up:{account_id}:{order_id}",
    effect="external",
    reconcile=find_charge,
)
def top_up(account_id: str, order_id: str, amount: int) -> None:
    """Charge a card and add the credit to the account.

    Parameters:
        account_id: who pays.
        order_id: what for; the same order is never charged twice.
        amount: how much.

    Raises:
        Invalid: the provider refuses the card.
    """
    charge = {"amount": amount, "account": account_id}
    reply = httpx.post(
        _CHARGES, json=charge, headers={"Idempotency-Key": current_key()}, timeout=_TIMEOUT_SECONDS
    )
    if reply.status_code == httpx.codes.PAYMENT_REQUIRED:
        raise Invalid(f"the provider refuses to charge {amount} for {order_id!r}")
    reply.raise_for_status()
    _credit(account_id, amount, reply)


def _credit(account_id: str, amount: int, reply: httpx.Response) -> None:
    """Confirm the charge, with the provider's id, and add the credit in the same commit."""
    with effect(result=reply.json()["id"]) as session:
        credited = update(Account).where(Account.id == account_id).values(balance=Account.balance + amount)
        session.execute(credited)
