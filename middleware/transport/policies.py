"""Which policies on the broker would break what the kit declares?

Policies change a queue's behaviour silently and AMQP never shows them. They are matched here as the broker
does it, because the broker's own list of queues shows a policy seconds after it is in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from ..durations import format_duration
from .topology import DEAD_LETTER_EXCHANGE, QueueDeclaration
from .versions import APPLIES_TO_QUORUM_QUEUES, CONSUMER_TIMEOUT

_FORBIDDEN: Final = ("message-ttl", "expires", "max-length", "max-length-bytes")


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of a virtual host.

    Attributes:
        name: its name.
        pattern: a regular expression, searched in the queue's name.
        definition: what it sets.
        priority: of those that match, the highest is in force.
        is_operator: whether it is an operator policy, which is in force beside a user's.
    """

    name: str
    pattern: str
    definition: Mapping[str, Any]
    priority: int = 0
    is_operator: bool = False

    def matches(self, queue: str) -> bool:
        """Whether it is meant for a queue; one that Python cannot read (the broker's is PCRE) is not."""
        try:
            return re.search(self.pattern, queue) is not None
        except re.error:
            return False


def read_policies(answer: Iterable[Mapping[str, Any]], *, is_operator: bool) -> list[Policy]:
    """Return the policies for quorum queues in an answer of RabbitMQ's HTTP API."""
    return [
        Policy(each["name"], each["pattern"], each["definition"], each.get("priority", 0), is_operator)
        for each in answer
        if each.get("apply-to", "all") in APPLIES_TO_QUORUM_QUEUES
    ]


def policy_conflicts(
    policies: Sequence[Policy], declared: Iterable[QueueDeclaration], consumer_timeout: timedelta
) -> list[str]:
    """Return one sentence for each setting in force that would break a promise of the kit.

    Parameters:
        policies: all of the virtual host.
        declared: the kit's queues.
        consumer_timeout: for how long a delivery may be held, as the kit was told.
    """
    return [
        sentence
        for declaration in declared
        for policy in _in_force(policies, declaration.name)
        for sentence in _conflicts(policy, declaration, consumer_timeout)
    ]


def _in_force(policies: Sequence[Policy], queue: str) -> list[Policy]:
    """Return the strongest user's and the strongest operator's policy of those that match."""
    found = []
    for is_operator in (False, True):
        matching = [each for each in policies if each.is_operator is is_operator and each.matches(queue)]
        if matching:
            found.append(max(matching, key=lambda each: each.priority))
    return found


def _conflicts(policy: Policy, declaration: QueueDeclaration, consumer_timeout: timedelta) -> list[str]:
    found = [
        f"queue {declaration.name!r}: expected no policy to set {key}, got: {policy.definition[key]!r} "
        f"by policy {policy.name!r}; jobs would be dropped or refused: narrow the policy's pattern or "
        f"remove it"
        for key in _FORBIDDEN
        if key in policy.definition
    ]
    limit, declared = policy.definition.get("delivery-limit"), declaration.arguments.get("x-delivery-limit")
    if limit is not None and declared is not None and 0 <= limit < declared:
        found.append(
            f"queue {declaration.name!r}: expected delivery-limit to be {declared} as declared, got: {limit} "
            f"by policy {policy.name!r}, and the lower one counts: narrow the policy's pattern or remove it"
        )
    timeout = policy.definition.get(CONSUMER_TIMEOUT)
    is_consumed = declaration.arguments.get("x-dead-letter-exchange") == DEAD_LETTER_EXCHANGE
    if timeout is not None and is_consumed and timeout < consumer_timeout / timedelta(milliseconds=1):
        found.append(
            f"queue {declaration.name!r}: expected {CONSUMER_TIMEOUT} to be at least "
            f"JOBS_BROKER_CONSUMER_TIMEOUT ({format_duration(consumer_timeout)}), got: {timeout} ms by "
            f"policy {policy.name!r}; raise it, or lower the setting"
        )
    return found
