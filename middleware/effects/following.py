"""May another job follow a keyed job's success? Where it can be written in the commit of the effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

FOLLOWING: Final = frozenset({"group_completion_callbacks", "on_success", "pipe_target"})
"""Options that ask for another job to be sent when this one has completed.

What follows a failure, `on_failure` and `on_retry_exhausted`, belongs to an outcome that has no commit; it is
published before the acknowledgement.
"""


def asks(options: Mapping[str, Any]) -> bool:
    """Whether the options of an actor or of a message ask for another job to follow."""
    return any(options.get(name) is not None for name in FOLLOWING & options.keys())


def refusal(actor_name: str, effect: str, options: Mapping[str, Any]) -> str:
    """Return why an actor whose effect ends before it returns, or a message for it, cannot have its options.

    What follows may need the result, which is not known yet in the commit; sent after that, a crash would
    lose it. Empty if it can.
    """
    found = sorted(name for name in FOLLOWING & options.keys() if options[name] is not None)
    if not found:
        return ""
    return (
        f"actor {actor_name!r}: expected a job with effect={effect!r} to have none of "
        f"{', '.join(sorted(FOLLOWING))}, got: {', '.join(found)}; what follows could be lost: send it in "
        "the block of the effect, which commits it as well"
    )
