"""Which charges does a benchmark run, and what do they need?"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import dramatiq

from tests.bench.workers import Place

QUEUE: Final = "critical"
TASK: Final = "bench"
ACCOUNTS: Final = 1000
"""Enough that two charges at a time rarely meet at one account's row."""


def seed(place: Place, usages: int) -> None:
    """Write accounts, and usages to be charged."""
    options = ["--accounts", str(ACCOUNTS), "--usages", str(usages), "--task", TASK]
    command = [sys.executable, "-m", "middleware.cli", "seed", *options]
    subprocess.run(command, env=place.variables(), check=True, stdout=subprocess.DEVNULL)


def charges(number: int, actor: str = "charge_credit") -> list[bytes]:
    """Return one charge for each usage."""
    return [_charge(actor, usage) for usage in range(1, number + 1)]


def _charge(actor: str, usage: int) -> bytes:
    message: dramatiq.Message[None] = dramatiq.Message(
        queue_name=QUEUE, actor_name=actor, args=(TASK, f"m{usage}"), kwargs={}, options={}
    )
    return message.encode()
