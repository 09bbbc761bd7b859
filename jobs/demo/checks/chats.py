"""Does each chat have a summary of all its messages?"""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Check, Findings, check, differ
from ..provider import SCRIPTS, summary_of, temper_of


def chats(findings: Findings) -> list[Check]:
    """Return the checks of the summaries."""
    return [
        check("each chat is summarised up to its last message", _summaries(findings)),
        check("the provider answered for each chat once", _answers(findings)),
        check("each failure of the provider is a retry or a dead letter", _failures(findings)),
    ]


def is_answered(chat: str) -> bool:
    """Whether the provider answers for a chat sooner or later."""
    return 200 in SCRIPTS[temper_of(chat)]


def _summaries(findings: Findings) -> Iterator[str]:
    for chat in findings.workload.chat_ids():
        last = findings.before.messages[chat]
        expected = (last, summary_of(chat, last)) if is_answered(chat) else None
        yield from differ(f"summary of {chat}", expected, findings.after.summaries.get(chat))


def _answers(findings: Findings) -> Iterator[str]:
    for chat in findings.workload.chat_ids():
        answered = findings.answers.get(chat, {}).get(200, 0)
        yield from differ(f"answers for {chat}", int(is_answered(chat)), answered)


def _failures(findings: Findings) -> Iterator[str]:
    tallies = findings.answers.values()
    failed = sum(times for each in tallies for status, times in each.items() if status != 200)
    found = findings.observed.retries_on("llm") + findings.died("summarize_chat")
    yield from differ("failures of the provider", failed, found)
