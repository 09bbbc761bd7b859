"""Which rules are there, and how certain is each? The catalogue; README's table is held to it by a test."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Level(StrEnum):
    """How certain a rule is.

    Attributes:
        ERROR: decided from the source or the services alone; `jobsctl check` exits with 1.
        HINT: may be wrong; exit code 0.
    """

    ERROR = "error"
    HINT = "hint"


class Code(NamedTuple):
    """A rule: how certain it is, and what it finds."""

    level: Level
    title: str


CODES: Final = {
    # The check itself
    "JOB001": Code(Level.ERROR, "a file that cannot be read"),
    "JOB002": Code(Level.ERROR, "a remark that silences without a reason, or no known code"),
    "JOB003": Code(Level.ERROR, "an application that cannot be loaded"),
    # Actors and who sends to them
    "JOB101": Code(Level.ERROR, "an idempotency key that does not fit its actor"),
    "JOB102": Code(Level.ERROR, "two actors whose keys are the same"),
    "JOB103": Code(Level.ERROR, "an argument that is a copy of data"),
    "JOB104": Code(Level.ERROR, "the end of a transaction that is the kit's"),
    "JOB105": Code(Level.ERROR, "an engine or a session made in an actor"),
    "JOB106": Code(Level.ERROR, "every exception caught and none raised"),
    "JOB107": Code(Level.ERROR, "a key field that is new with every send"),
    "JOB108": Code(Level.ERROR, "a write with neither key nor reason"),
    "JOB109": Code(Level.ERROR, "a reason that is none, or that stands beside a key"),
    # Limits
    "JOB110": Code(Level.ERROR, "a delivery held for longer than the broker allows"),
    "JOB111": Code(Level.ERROR, "a limit out of range"),
    "JOB112": Code(Level.ERROR, "a lease longer than any job may run"),
    "JOB113": Code(Level.ERROR, "keys forgotten before their jobs"),
    # What may be wrong, and may be meant
    "JOB201": Code(Level.HINT, "an identifying argument that is not in the key"),
    "JOB202": Code(Level.HINT, "a write, or the network, reached where a duplicate may do harm"),
    "JOB203": Code(Level.HINT, "a list of ids as one argument"),
    "JOB204": Code(Level.HINT, "a send in a loop"),
    "JOB205": Code(Level.HINT, "a wait for a result after a send"),
    "JOB206": Code(Level.HINT, "a send before a write, in an actor without a key"),
    "JOB207": Code(Level.HINT, "queues that one worker cannot consume together"),
    # `--live`: what the services hold
    "JOB301": Code(Level.ERROR, "a broker that does not answer, or refuses"),
    "JOB302": Code(Level.ERROR, "a queue or exchange that is missing, or is not as declared"),
    "JOB303": Code(Level.ERROR, "a policy that would drop or refuse jobs"),
    "JOB304": Code(Level.ERROR, "dead letters that lead nowhere"),
    "JOB305": Code(Level.ERROR, "a database that is not ready"),
    "JOB306": Code(Level.HINT, "a queue with few members"),
    "JOB307": Code(Level.HINT, "something that could not be asked"),
}
"""Code → rule, in the order of README's table."""
