"""What does the demonstration submit?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from jobs.sample.mail import TEMPLATE, event_of

SHUFFLE_SEED: Final = 20240229  # any fixed number: two runs submit in the same order
TASK: Final = "chat"
UNPAID_TASK: Final = "unpaid"
UNKNOWN_TASK: Final = "unknown"
EMAILS: Final = {"steady": 120, "greylisted": 40, "silent": 10, "unknown": 10}
CHATS: Final = {"steady": 180, "flaky": 60, "throttled": 40, "silent": 20, "refused": 12, "broken": 8}
VERSIONS: Final = 3
"""Versions of each resource; every one has its job, and the resource is at the last one."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How much of what.

    Attributes:
        accounts: accounts that can pay whatever comes. Defaults to 40.
        usages: their usages, each to be charged once. Defaults to 3,000.
        twice: how many of those are submitted twice. Defaults to 600.
        unpaid: usages of an account without credit: a business rule rejects them. Defaults to 10.
        unknown: charges for usages that nobody recorded: invalid. Defaults to 5.
        emails: temper of the recipient → number of emails. Defaults to 180 in all.
        emails_twice: how many emails to steady recipients are submitted twice. Defaults to 40.
        chats: temper of the chat → number of them. Defaults to 320 in all.
        resources: resources, each with jobs for all its versions. Defaults to 100.
        resources_twice: how many resources have every version submitted twice. Defaults to 20.
    """

    accounts: int = 40
    usages: int = 3000
    twice: int = 600
    unpaid: int = 10
    unknown: int = 5
    emails: Mapping[str, int] = field(default_factory=lambda: dict(EMAILS))
    emails_twice: int = 40
    chats: Mapping[str, int] = field(default_factory=lambda: dict(CHATS))
    resources: int = 100
    resources_twice: int = 20

    def scaled(self, factor: float) -> Workload:
        """Return a workload of about `factor` times the size, with at least one of each."""
        return Workload(**{each.name: _scale(getattr(self, each.name), factor) for each in fields(self)})

    def charges(self) -> list[tuple[str, str]]:
        """Return every charge to submit, (task_id, message_id), duplicates included, shuffled."""
        once = _messages(TASK, self.usages)
        wrong = _messages(UNPAID_TASK, self.unpaid) + _messages(UNKNOWN_TASK, self.unknown)
        return _shuffled([*once, *once[: self.twice], *wrong])

    def email_jobs(self) -> list[tuple[str, str, str]]:
        """Return every email to submit, (user_id, template_id, event_id), duplicates included, shuffled."""
        users = [*self.users(), *_numbered("steady", self.emails_twice)]
        return _shuffled([(user, TEMPLATE, event_of(user)) for user in users])

    def users(self) -> list[str]:
        """Return the ids of everybody who gets an email, `<temper>-<number>`."""
        return [user for temper, count in self.emails.items() for user in _numbered(temper, count)]

    def chat_ids(self) -> list[str]:
        """Return every chat to summarise, `<temper>-<number>`, shuffled."""
        return _shuffled([chat for temper, count in self.chats.items() for chat in _numbered(temper, count)])

    def index_jobs(self) -> list[tuple[str, int]]:
        """Return every version to index, (resource_id, version), duplicates included, shuffled."""
        resources = [*self.resource_ids(), *self.resource_ids()[: self.resources_twice]]
        return _shuffled([(each, version) for each in resources for version in range(1, VERSIONS + 1)])

    def resource_ids(self) -> list[str]:
        """Return the ids of the resources."""
        return _numbered("resource", self.resources)

    def size(self) -> int:
        """Return how many jobs there are."""
        jobs = (self.charges(), self.email_jobs(), self.chat_ids(), self.index_jobs())
        return sum(len(each) for each in jobs)


def _scale(count: Any, factor: float) -> Any:
    if isinstance(count, int):
        return max(1, round(count * factor))
    return {temper: _scale(each, factor) for temper, each in count.items()}


def _messages(task: str, count: int) -> list[tuple[str, str]]:
    return [(task, f"m{number}") for number in range(1, count + 1)]


def _numbered(what: str, count: int) -> list[str]:
    return [f"{what}-{number}" for number in range(1, count + 1)]


_T = TypeVar("_T")


def _shuffled(items: list[_T]) -> list[_T]:
    random.Random(SHUFFLE_SEED).shuffle(items)
    return items
