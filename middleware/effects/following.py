"""May another job follow a job with an idempotency key? Not through Dramatiq's own options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

FOLLOWING: Final = frozenset(
    {
        "group_completion_callbacks",
        "group_completion_uuid",
        "on_failure",
        "on_retry_exhausted",
        "on_success",
        "pipe_target",
    }
)
"""Options that ask for another job to be sent when this one has ended."""


def refusal(actor_name: str, options: Mapping[str, Any]) -> str:
    """Return why a keyed actor, or a message for it, cannot have its options; empty if it can.

    What follows a job would be lost by a crash after the commit, and sent twice by one before the
    acknowledgement.
    """
    found = sorted(name for name in FOLLOWING & options.keys() if options[name] is not None)
    if not found:
        return ""
    return (
        f"actor {actor_name!r}: expected a job with an idempotency_key to have none of "
        f"{', '.join(sorted(FOLLOWING))}, got: {', '.join(found)}; what follows could be lost or sent twice: "
        "let an actor without a key send both, or leave a row for the next job to find"
    )
