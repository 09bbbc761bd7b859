"""What did the run see: how deliveries ended, and what the dead letters say?"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from middleware.observe import UNFINISHED
from middleware.transport.delivery import Delivery
from middleware.transport.evidence import ATTEMPT, HISTORY, KIND, REASON, describe, type_name
from middleware.transport.memory import DeadLetter
from middleware.transport.outcome import Outcome, Retry


@dataclass
class Observed:
    """How the deliveries ended.

    Attributes:
        ended: jobs that reached their end.
        endings: actor and name of the outcome → deliveries.
        retries: queue, error kind and cause → retries.
        left: queue → jobs still in it after the run.
    """

    ended: int = 0
    endings: Counter[tuple[str, str]] = field(default_factory=Counter)
    retries: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    left: dict[str, int] = field(default_factory=dict)

    def note(self, delivery: Delivery, outcome: Outcome) -> None:
        """Count one delivery."""
        self.endings[delivery.actor_name, outcome.name] += 1
        if isinstance(outcome, Retry):
            self.retries[delivery.queue_name, outcome.kind, cause(outcome.error)] += 1
        if not isinstance(outcome, UNFINISHED):
            self.ended += 1

    def duplicates(self) -> Counter[str]:
        """Return how many duplicates each actor was spared."""
        found = {actor: times for (actor, name), times in self.endings.items() if name == "duplicate"}
        return Counter(found)

    def retries_on(self, queue: str) -> int:
        """Return how many retries a queue's jobs took."""
        return sum(times for (name, _, _), times in self.retries.items() if name == queue)


@dataclass(frozen=True)
class Letter:
    """A dead letter as a person reads it.

    Attributes:
        job: the actor's name and its arguments, joined by colons.
        attempts: how often it was tried.
        history: one entry per failed attempt.
    """

    queue: str
    job: str
    kind: str
    reason: str
    attempts: int
    history: tuple[dict[str, Any], ...]

    @property
    def actor(self) -> str:
        """The actor's name."""
        return self.job.partition(" ")[0]

    @classmethod
    def read(cls, letter: DeadLetter) -> Letter:
        """Read the message's body and the headers that the failure left."""
        message = json.loads(letter.body)
        history = tuple(json.loads(letter.headers.get(HISTORY, "[]")))
        return cls(
            queue=letter.queue,
            job=f"{message['actor_name']} {':'.join(str(each) for each in message['args'])}",
            kind=letter.headers.get(KIND, ""),
            reason=letter.headers.get(REASON) or (history[-1]["message"] if history else ""),
            attempts=letter.headers.get(ATTEMPT, 0),
            history=history,
        )


def cause(error: BaseException) -> str:
    """Return what went wrong without what differs from job to job, so that equal causes count together."""
    return type_name(error) if isinstance(error, httpx.HTTPError) else describe(error)
