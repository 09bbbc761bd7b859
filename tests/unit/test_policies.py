"""Which of a virtual host's policies are in force on the kit's queues, and which of those break a promise?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from middleware.transport.policies import Policy, policy_conflicts, read_policies
from middleware.transport.topology import QueueDeclaration

JOBS = QueueDeclaration("jobs", {"x-delivery-limit": 1000, "x-dead-letter-exchange": "jobs.dlx"})
HALF_AN_HOUR = timedelta(minutes=30)


def policy(name: str, pattern: str = "^jobs$", priority: int = 0, **definition: Any) -> Policy:
    """Return a user's policy; underscores in names stand for hyphens."""
    return Policy(
        name, pattern, {key.replace("_", "-"): value for key, value in definition.items()}, priority
    )


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ([policy("a", message_ttl=1)], ["'a'", "message-ttl", "1"]),
        ([policy("a", "obs", max_length=5)], ["'a'", "max-length", "5"]),
        ([policy("a", delivery_limit=20)], ["'a'", "delivery-limit", "1000", "20"]),
        ([policy("a", priority=1), policy("b", priority=2, expires=3)], ["'b'", "expires", "3"]),
        ([policy("a", consumer_timeout=60_000)], ["'a'", "consumer-timeout", "30m", "60000 ms"]),
    ],
)
def test_what_loses_jobs_is_named(found: list[Policy], named: list[str]) -> None:
    """A policy in force that expires, drops or refuses jobs is named with its setting and value."""
    (sentence,) = policy_conflicts(found, [JOBS], HALF_AN_HOUR)
    assert [word for word in ["'jobs'", *named] if word not in sentence] == []


@pytest.mark.parametrize(
    "found",
    [
        [],
        [policy("elsewhere", "^other", max_length=1)],
        [policy("of a lower priority", priority=1, max_length=1), policy("in force", priority=2)],
        [policy("harmless", delivery_limit=5000, max_in_memory_length=1)],
        [policy("no limit", delivery_limit=-1)],
        [policy("as long as the kit was told", consumer_timeout=1_800_000)],
        [policy("in a dialect that Python cannot read", r"\Qjobs\E", max_length=1)],
    ],
)
def test_what_harms_nothing_is_not_named(found: list[Policy]) -> None:
    """A policy for other queues, beaten by another one, or without effect on a promise is fine."""
    assert policy_conflicts(found, [JOBS], HALF_AN_HOUR) == []


def test_an_operators_policy_is_in_force_beside_a_users() -> None:
    """The strongest of each kind counts; what is meant for exchanges or streams does not."""
    answer: list[dict[str, Any]] = [
        {"name": "o", "pattern": ".*", "definition": {"max-length": 1}, "apply-to": "queues"},
        {"name": "x", "pattern": ".*", "definition": {"max-length": 2}, "apply-to": "streams", "priority": 9},
    ]
    found = [*read_policies(answer, is_operator=True), policy("user's", priority=99)]
    (sentence,) = policy_conflicts(found, [JOBS], HALF_AN_HOUR)
    assert "'o'" in sentence


def test_how_long_a_reader_of_other_queues_may_take_does_not_matter() -> None:
    """A timeout for all queues is named once: the kit consumes neither dead letters nor the ladder."""
    everywhere = policy("a", ".*", consumer_timeout=1)
    dead = QueueDeclaration("jobs.XQ", {"x-delivery-limit": 1_000_000})
    level = QueueDeclaration("jobs.delay.00", {"x-dead-letter-exchange": ""})
    assert len(policy_conflicts([everywhere], [JOBS, dead, level], HALF_AN_HOUR)) == 1
