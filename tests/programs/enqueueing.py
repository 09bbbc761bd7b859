"""Enqueues a charge in a transaction, then ends: `python -m tests.programs.enqueueing NUMBER END`.

END is `commit`, `roll-back`, or `die`: commit, and be killed before anything else can happen.
"""

from __future__ import annotations

import os
import signal
import sys

from sqlalchemy.orm import Session

from jobs import charge_credit, store
from middleware import enqueue


def main() -> None:
    """Do it."""
    number, end = sys.argv[1:]
    with Session(store.engine) as session:
        enqueue(session, charge_credit.message("t", f"m{number}"))
        session.flush()
        if end == "roll-back":
            session.rollback()
        else:
            session.commit()
        if end == "die":
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
