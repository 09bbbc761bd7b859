"""How can the books be spoilt, so that a test sees the checks find it?"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

NONE: Final = "none"
SABOTAGES: Final = {
    NONE: "",
    "lose-entry": "DELETE FROM credit_entries WHERE reference = 'chat:m1'",
    "lose-ledger-row": "DELETE FROM job_ledger WHERE key = 'credit:chat:m1'",
    "lose-email-key": "DELETE FROM job_ledger WHERE key = 'email:steady-1:receipt:order-steady-1'",
    "cut-summary": "UPDATE chat_summaries SET up_to = 1 WHERE chat_id = 'steady-1'",
    "stale-entry": "UPDATE resource_index SET version = 1, terms = 'resource1edition1' "
    "WHERE resource_id = 'resource-1'",
    "charge-twice": "UPDATE accounts SET balance = balance - 2 WHERE id = 'account-1'",
}


def spoil(file: Path, sabotage: str) -> None:
    """Run one of the statements on the SQLite file."""
    with closing(sqlite3.connect(file)) as database:
        database.execute(SABOTAGES[sabotage])
        database.commit()
