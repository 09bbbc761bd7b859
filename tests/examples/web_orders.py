"""What do the two web applications of these examples have in common? What an order writes, and enqueues.

An order is a usage to be paid for: its row and the job that charges it are committed together, or neither is.
Nothing here waits for the broker.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import insert

from jobs.models import Usage

TASK: Final = "order"


def usage(number: str, cost: int) -> Any:
    """Return the statement that records what an order costs; `accounts` holds who pays for it."""
    return insert(Usage).values(task_id=TASK, message_id=number, account_id="customer", cost=cost)
