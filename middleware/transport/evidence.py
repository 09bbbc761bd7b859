"""What do earlier attempts leave for the next one, and for the person who reads the dead letter?

The body of a job stays byte for byte what was sent; attempts, history and the last traceback travel in
AMQP headers. A retry can therefore not outgrow `max_message_size`, which counts the body alone, and
the headers are cut to a budget: they share one frame of 128 KiB, and one above that closes the connection.
"""

from __future__ import annotations

import json
import time
import traceback
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

HEADER_BUDGET: Final = 32 * 1024
"""Bytes that all headers of one message may take together."""
MESSAGE_LIMIT: Final = 1024
"""Characters kept of one exception's text."""
HISTORY_BYTES: Final = 10 * 1024
TRACEBACK_BYTES: Final = 14 * 1024

ATTEMPT: Final = "jobs-attempt"
SNOOZES: Final = "jobs-snoozes"
HISTORY: Final = "jobs-history"
DROPPED: Final = "jobs-history-dropped"
TRACEBACK: Final = "jobs-traceback"
KIND: Final = "jobs-kind"
REASON: Final = "jobs-reason"
COPY_ID: Final = "jobs-copy-id"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a job's earlier attempts.

    Attributes:
        attempt: number of the attempt that this delivery is, from 1.
        snoozes: how often the job was put off without using an attempt.
        history: one entry per failed attempt, oldest first: at, attempt, kind, exception, message.
        dropped: entries left out of `history` because they did not fit.
        last_traceback: of the newest failed attempt.
        copy_id: identifies this copy among copies of one attempt; empty for the original.
    """

    attempt: int = 1
    snoozes: int = 0
    history: tuple[Mapping[str, Any], ...] = field(default=())
    dropped: int = 0
    last_traceback: str = ""
    copy_id: str = ""

    def failed(self, kind: str, error: BaseException | None, reason: str = "") -> Evidence:
        """Return the evidence with this attempt's failure added."""
        entry = {
            "at": round(time.time(), 3),
            "attempt": self.attempt,
            "kind": kind,
            "exception": shorten(type_name(error), 200) if error is not None else "",
            "message": shorten(reason or (describe(error) if error is not None else ""), MESSAGE_LIMIT),
        }
        trace = format_traceback(error) if error is not None else self.last_traceback
        return replace(self, history=(*self.history, entry), last_traceback=trace)

    def next_attempt(self) -> Evidence:
        """Return the evidence that the copy for the next attempt carries."""
        return replace(self, attempt=self.attempt + 1, copy_id=uuid.uuid4().hex)

    def snoozed(self) -> Evidence:
        """Return the evidence that a snoozed copy carries: same attempt, one snooze more."""
        return replace(self, snoozes=self.snoozes + 1, copy_id=uuid.uuid4().hex)

    def to_headers(self, *, full: bool = True) -> dict[str, Any]:
        """Render as AMQP headers within the budget.

        Parameters:
            full: False leaves out history and traceback, for a broker that refused the full copy.
        """
        headers: dict[str, Any] = {ATTEMPT: self.attempt}
        if self.snoozes:
            headers[SNOOZES] = self.snoozes
        if self.copy_id:
            headers[COPY_ID] = self.copy_id
        if not full:
            return headers
        kept, dropped = _fit(list(self.history), HISTORY_BYTES)
        if kept:
            headers[HISTORY] = _render(kept)
        if dropped or self.dropped:
            headers[DROPPED] = dropped + self.dropped
        if self.last_traceback:
            headers[TRACEBACK] = cut(self.last_traceback, TRACEBACK_BYTES)
        return headers

    @classmethod
    def from_headers(cls, headers: Mapping[str, Any] | None) -> Evidence:
        """Read what an earlier attempt left; whatever is not as the kit writes it counts as absent."""
        if not headers:
            return FIRST
        attempt = headers.get(ATTEMPT)
        if not _is_count(attempt, least=1) and not headers.get(SNOOZES):
            return FIRST
        trace, copy_id = headers.get(TRACEBACK), headers.get(COPY_ID)
        return cls(
            attempt=_count(attempt, 1),
            snoozes=_count(headers.get(SNOOZES), 0),
            history=_read_history(headers.get(HISTORY)),
            dropped=_count(headers.get(DROPPED), 0),
            last_traceback=trace if isinstance(trace, str) else "",
            copy_id=copy_id if isinstance(copy_id, str) else "",
        )


FIRST: Final = Evidence()


def _is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31


def _count(value: object, default: int) -> int:
    return value if _is_count(value, default) else default  # type: ignore[return-value]  # _is_count narrows


def _read_history(text: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(text, str):
        return ()
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(entries, list):
        return ()
    return tuple(entry for entry in entries if isinstance(entry, dict))


def _fit(entries: list[Mapping[str, Any]], budget: int) -> tuple[list[Mapping[str, Any]], int]:
    """Keep the first entry and as many of the newest as fit: how it began and how it ended."""
    sizes = [len(_render(entry).encode()) + 2 for entry in entries]
    if sum(sizes) <= budget:
        return entries, 0
    if sizes[0] > budget:  # not the kit's: others may write headers too
        kept, dropped = _fit(entries[1:], budget)
        return kept, dropped + 1
    room = budget - sizes[0]
    newest: list[Mapping[str, Any]] = []
    for entry, size in zip(reversed(entries[1:]), reversed(sizes[1:]), strict=True):
        room -= size
        if room < 0:
            break
        newest.append(entry)
    kept = [entries[0], *reversed(newest)]
    return kept, len(entries) - len(kept)


def _render(entries: Mapping[str, Any] | list[Mapping[str, Any]]) -> str:
    """Return JSON that keeps other scripts' letters as they are: escaped, each takes up to twelve bytes."""
    return clean(json.dumps(entries, ensure_ascii=False))


def type_name(error: BaseException) -> str:
    """Return the exception's class name with its module, without `builtins`."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def describe(error: BaseException) -> str:
    """Return the exception's text, also when its `__str__` fails."""
    try:
        return clean(str(error))
    except BaseException as failure:  # whatever it is, it is not the job's own failure
        return f"<text of {type_name(error)} not available: {type_name(failure)}>"


def format_traceback(error: BaseException) -> str:
    """Return the traceback as Python prints it, at most 30 frames a link of the chain."""
    try:
        return clean("".join(traceback.format_exception(error, limit=30)))
    except BaseException as failure:  # as above
        return f"<traceback of {type_name(error)} not available: {type_name(failure)}>"


def clean(text: str) -> str:
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shorten(text: str, limit: int) -> str:
    """Cut a text to `limit` characters and say so."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut(text: str, budget: int) -> str:
    """Cut a text to `budget` bytes of UTF-8, keeping its end, where a traceback names the error."""
    data = clean(text).encode()
    if len(data) <= budget:
        return data.decode()
    return "…" + data[-(budget - 3) :].decode("utf-8", "ignore")
