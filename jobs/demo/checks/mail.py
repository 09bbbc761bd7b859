"""Was each email accepted once?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..findings import Check, Findings, check, differ
from ..mail_server import ACCEPTED, SCRIPTS


def mail(findings: Findings) -> list[Check]:
    """Return the checks of the emails."""
    return [
        check("the mail server accepted each email once", _accepted(findings)),
        check("each refusal by the mail server is a retry or a dead letter", _refusals(findings)),
    ]


def is_deliverable(user: str) -> bool:
    """Whether the mail server takes a user's email sooner or later."""
    return ACCEPTED in SCRIPTS[user.rpartition("-")[0]]


def _accepted(findings: Findings) -> Iterator[str]:
    taken = [each for each in findings.mail if each.status == ACCEPTED]
    times = Counter(each.user for each in taken)
    for user in findings.workload.users():
        yield from differ(f"emails to {user}", int(is_deliverable(user)), times[user])
    yield from differ("Message-IDs", len(taken), len({each.message_id for each in taken}))


def _refusals(findings: Findings) -> Iterator[str]:
    refused = sum(each.status != ACCEPTED for each in findings.mail)
    found = findings.observed.retries_on("critical") + findings.died("send_email")
    yield from differ("refusals by the mail server", refused, found)
