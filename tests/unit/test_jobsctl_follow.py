from __future__ import annotations

from datetime import timedelta

import pytest
from dramatiq.errors import Retry as RetryRequested

from middleware import BusinessReject
from middleware.cli.follow import tell
from middleware.transport.outcome import (
    COMPLETED,
    DISCARDED,
    DUPLICATE,
    RETURNED,
    Dead,
    Outcome,
    Retry,
    Snoozed,
)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (COMPLETED, "completed on attempt 2"),
        (DUPLICATE, "duplicate: its idempotency key was spent before, so nothing ran"),
        (DISCARDED, "discarded without a dead letter"),
        (RETURNED, "returned to its queue"),
        (Snoozed(timedelta(seconds=5), "its twin runs"), "put off for 5s: its twin runs"),
        (
            Retry("transient", RetryRequested("throttled"), timedelta(seconds=1.04)),
            "attempt 2 failed (transient: throttled), again in 1s",
        ),
        (
            Retry("unexpected", OSError("disk"), timedelta(seconds=75.6)),
            "attempt 2 failed (unexpected: OSError: disk), again in 1m16s",
        ),
        (Dead("rejected", BusinessReject("no credit")), "dead letter after attempt 2 (rejected: no credit)"),
        (Dead("undecodable", None, "not JSON"), "dead letter after attempt 2 (undecodable: not JSON)"),
    ],
)
def test_every_outcome_has_words(outcome: Outcome, words: str) -> None:
    """Each outcome is told in one line with what led to it."""
    assert tell(2, outcome) == words
