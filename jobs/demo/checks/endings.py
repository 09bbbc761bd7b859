"""Did every job end, in the way that it had to?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ..findings import Check, Findings, check, differ
from ..provider import temper_of
from ..workload import UNKNOWN_TASK, UNPAID_TASK
from .chats import is_answered
from .mail import is_deliverable

_TASKS: Final = {UNPAID_TASK: "rejected", UNKNOWN_TASK: "invalid"}
_TEMPERS: Final = {"refused": "invalid", "broken": "transient"}
"""Tasks of charges and tempers of chats whose jobs cannot succeed, and the kind of their dead letters."""


def endings(findings: Findings) -> list[Check]:
    """Return the checks that concern all jobs."""
    return [
        check("every job ended and the queues are empty", _unfinished(findings)),
        check("every effect has its ledger row, and no other row exists", _ledger(findings)),
        check("every second submission was a duplicate", _duplicates(findings)),
        check("exactly the hopeless jobs are dead letters, each with its evidence", _letters(findings)),
    ]


def _unfinished(findings: Findings) -> Iterator[str]:
    yield from differ("jobs ended", findings.workload.size(), findings.observed.ended)
    for queue, left in findings.observed.left.items():
        yield from differ(f"jobs left in {queue}", 0, left)


def _ledger(findings: Findings) -> Iterator[str]:
    workload, after = findings.workload, findings.after
    keys = [f"credit:{reference}" for reference, _, _ in after.entries]
    keys += {f"email:{':'.join(job)}" for job in workload.email_jobs() if is_deliverable(job[0])}
    chats = [chat for chat in workload.chat_ids() if is_answered(chat)]
    keys += [f"summary:{chat}:{findings.before.messages[chat]}" for chat in chats]
    keys += {f"resource:{resource}:v{version}" for resource, version in workload.index_jobs()}
    expected = Counter(keys)
    for key in sorted(expected.keys() | after.ledger.keys()):
        yield from differ(f"ledger rows of {key}", expected[key], after.ledger[key])


def _duplicates(findings: Findings) -> Iterator[str]:
    workload, found = findings.workload, findings.observed.duplicates()
    charges = [job for job in workload.charges() if job[0] not in _TASKS]
    emails = [job for job in workload.email_jobs() if is_deliverable(job[0])]
    for actor, jobs in (
        ("charge_credit", charges),
        ("send_email", emails),
        ("index_resource", workload.index_jobs()),
    ):
        yield from differ(f"duplicates of {actor}", len(jobs) - len(set(jobs)), found[actor])


def _letters(findings: Findings) -> Iterator[str]:
    expected = Counter(_hopeless(findings))
    found = Counter(f"{letter.job} ({letter.kind})" for letter in findings.letters)
    for job in sorted(expected.keys() | found.keys()):
        yield from differ(f"dead letters of {job}", expected[job], found[job])
    for letter in findings.letters:
        if not letter.reason or len(letter.history) != letter.attempts:
            yield f"the dead letter of {letter.job} lacks evidence: {letter}"


def _hopeless(findings: Findings) -> Iterator[str]:
    for task, message in findings.workload.charges():
        if task in _TASKS:
            yield f"charge_credit {task}:{message} ({_TASKS[task]})"
    for job in findings.workload.email_jobs():
        if not is_deliverable(job[0]):
            yield f"send_email {':'.join(job)} (invalid)"
    for chat in findings.workload.chat_ids():
        if not is_answered(chat):
            yield f"summarize_chat {chat}:{findings.before.messages[chat]} ({_TEMPERS[temper_of(chat)]})"
