from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from middleware.transport.evidence import (
    ATTEMPT,
    COPY_ID,
    DROPPED,
    FIRST,
    HEADER_BUDGET,
    HISTORY,
    SNOOZES,
    TRACEBACK,
    Evidence,
    cut,
    describe,
    format_traceback,
    type_name,
)


def size_of(headers: dict[str, Any]) -> int:
    """Return the bytes that headers take on the wire, names included, with a little for their types."""
    return sum(len(name) + len(str(value).encode()) + 8 for name, value in headers.items())


def test_the_first_attempt_has_left_nothing() -> None:
    """A job without headers is at its first attempt."""
    assert Evidence.from_headers(None) is FIRST
    assert Evidence.from_headers({}) is FIRST
    assert (FIRST.attempt, FIRST.history) == (1, ())


def test_what_is_written_reads_the_same() -> None:
    """Attempts, history and traceback come back as they were written."""
    evidence = FIRST
    for number in (1, 2):
        try:
            raise ValueError(f"failure {number}")
        except ValueError as error:
            evidence = evidence.failed("unexpected", error).next_attempt()
    read = Evidence.from_headers(evidence.to_headers())
    assert read == evidence
    assert read.attempt == 3
    assert [entry["message"] for entry in read.history] == ["failure 1", "failure 2"]
    assert [entry["attempt"] for entry in read.history] == [1, 2]
    assert "failure 2" in read.last_traceback


def test_a_snooze_uses_no_attempt() -> None:
    """Snoozes are counted apart from attempts, and survive the wire."""
    evidence = Evidence.from_headers(FIRST.snoozed().snoozed().to_headers())
    assert (evidence.attempt, evidence.snoozes, evidence.history) == (1, 2, ())


def test_each_copy_has_its_own_id() -> None:
    """Two copies of one attempt can be told apart."""
    assert FIRST.next_attempt().copy_id != FIRST.next_attempt().copy_id
    assert FIRST.snoozed().copy_id


def test_the_reduced_form_keeps_the_count() -> None:
    """Headers for a broker that refused the full copy hold the attempt and no history."""
    evidence = FIRST.failed("unexpected", ValueError("x")).next_attempt()
    assert set(evidence.to_headers(full=False)) == {ATTEMPT, COPY_ID}


@given(st.lists(st.text(max_size=3000), min_size=1, max_size=60))
@settings(max_examples=50)
def test_headers_stay_within_the_budget(texts: list[str]) -> None:
    """However many failures with whatever texts, all headers together stay under 32 KiB."""
    evidence = FIRST
    for text in texts:
        evidence = evidence.failed("unexpected", ValueError(text * 5)).next_attempt()
    headers = evidence.to_headers()
    assert size_of(headers) < HEADER_BUDGET - 2048  # room for kind and reason
    kept = json.loads(headers[HISTORY])
    assert kept[0]["attempt"] == 1
    assert kept[-1]["attempt"] == len(texts)
    assert len(kept) + headers.get(DROPPED, 0) == len(texts)


def test_what_was_dropped_stays_counted() -> None:
    """Entries that had to go are counted over all attempts."""
    evidence = FIRST
    for _ in range(40):
        evidence = evidence.failed("unexpected", ValueError("x" * 1000)).next_attempt()
        evidence = Evidence.from_headers(evidence.to_headers())
    assert len(evidence.history) + evidence.dropped == 40
    assert evidence.history[0]["attempt"] == 1
    assert evidence.history[-1]["attempt"] == 40


@pytest.mark.parametrize(
    "headers",
    [
        {ATTEMPT: 0},
        {ATTEMPT: "3"},
        {ATTEMPT: True},
        {ATTEMPT: 2**40},
        {ATTEMPT: None},
        {"x-death": [{"count": 3}]},
    ],
    ids=repr,
)
def test_foreign_attempts_do_not_count(headers: dict[str, Any]) -> None:
    """An attempt number that the kit did not write counts as none."""
    assert Evidence.from_headers(headers) == FIRST


@pytest.mark.parametrize(
    ("header", "value"),
    [
        (HISTORY, 7),
        (HISTORY, "{"),
        (HISTORY, "{}"),
        (HISTORY, "[1, null]"),
        (HISTORY, "[" * 100_000),
        (TRACEBACK, b"x"),
        (COPY_ID, 5),
        (SNOOZES, "many"),
        (DROPPED, -1),
    ],
)
def test_a_foreign_header_counts_as_absent(header: str, value: Any) -> None:
    """A header of another type or content is left out; the others count."""
    assert Evidence.from_headers({ATTEMPT: 2, header: value}) == Evidence(attempt=2)


@pytest.mark.parametrize(
    "foreign",
    [
        {TRACEBACK: "x" * 100_000},
        {HISTORY: json.dumps([{"message": "x" * 100_000}])},
        {HISTORY: json.dumps([{"message": "é" * 11_000}] * 9)},
        {COPY_ID: "x" * 100_000},
    ],
    ids=["traceback", "an entry", "entries", "copy id"],
)
def test_large_foreign_headers_are_not_passed_on(foreign: dict[str, Any]) -> None:
    """Headers that somebody else blew up do not make a retry's exceed the budget."""
    evidence = Evidence.from_headers({ATTEMPT: 2, **foreign})
    headers = evidence.failed("unexpected", ValueError("ours")).next_attempt().to_headers()
    assert size_of(headers) < HEADER_BUDGET
    assert json.loads(headers[HISTORY])[-1]["message"] == "ours"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_without_text_has_evidence() -> None:
    """An exception whose text cannot be had does not break the evidence."""
    evidence = FIRST.failed("unexpected", Unprintable())
    assert "not available: RuntimeError" in evidence.history[0]["message"]
    assert evidence.history[0]["exception"].endswith("Unprintable")
    assert "Unprintable" in evidence.last_traceback


def test_surrogates_are_escaped() -> None:
    """A lone surrogate, which UTF-8 cannot carry, is written as an escape."""
    error = ValueError("\ud800!")
    assert describe(error) == "\\ud800!"
    format_traceback(error).encode()
    FIRST.failed("undecodable", None, "\udfff").to_headers()[HISTORY].encode()


@given(st.text(), st.integers(min_value=4, max_value=40))
def test_a_cut_text_fits_and_keeps_its_end(text: str, budget: int) -> None:
    """A text cut to bytes is no longer than that and still ends as it did."""
    short = cut(text, budget)
    assert len(short.encode()) <= budget
    clean = text.encode("utf-8", "backslashreplace").decode()
    assert clean.endswith(short.removeprefix("…"))


def test_types_are_named_as_python_names_them() -> None:
    """Builtins have no module, others do."""
    assert type_name(ValueError()) == "ValueError"
    assert type_name(json.JSONDecodeError("x", "", 0)) == "json.decoder.JSONDecodeError"
