from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from middleware.checks import CODES, Level, check_sources
from tests.checks.cases import Case, Place, read_corpus

CASES = read_corpus()


def look(case: Case, folder: Path) -> dict[Level, set[Place]]:
    """Return what the checks find in a case."""
    case.write(folder)
    found: dict[Level, set[Place]] = {Level.ERROR: set(), Level.HINT: set()}
    for each in check_sources([folder]).findings:
        found[each.level].add((Path(each.file).name, each.line, each.code))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_error_where_there_is_none(case: Case, tmp_path: Path) -> None:
    """Precision is 1: every error that is reported is one that the corpus declares, at its very line."""
    assert look(case, tmp_path)[Level.ERROR] - case.errors == set()


def test_every_error_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Recall is 1, and the corpus has each rule: none can be left out without being missed."""
    declared: Counter[str] = Counter()
    missed: dict[str, list[tuple[str, Place]]] = {}
    for case in CASES:
        found = look(case, tmp_path_factory.mktemp("case"))[Level.ERROR]
        declared.update(code for _, _, code in case.errors)
        for place in case.errors - found:
            missed.setdefault(place[2], []).append((case.name, place))
    of_sources = {name for name, code in CODES.items() if code.level is Level.ERROR and name < "JOB200"}
    assert set(declared) == of_sources - {"JOB003", "JOB112", "JOB113"}  # these need more than the source
    assert missed == {}


def test_hints_are_told_apart(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every hint of the corpus is found; how many others there are is printed, not asserted."""
    right = wrong = 0
    missed = []
    for case in CASES:
        found = look(case, tmp_path_factory.mktemp("case"))[Level.HINT]
        right += len(found & case.hints)
        wrong += len(found - case.hints)
        missed += [(case.name, place) for place in case.hints - found]
    with capsys.disabled():
        sys.stdout.write(
            f"\nhints: {right} declared of {right + wrong}, precision {right / (right + wrong):.2f}\n"
        )
    assert missed == []


def test_sends_that_join_a_transaction_are_not_hinted_at(tmp_path: Path) -> None:
    """A keyed actor's sends are rows of its transaction: one by one, none waits for a confirm."""
    name = "hints:send_in_a_loop_that_joins_the_transaction"
    (case,) = [each for each in CASES if each.name == name]
    assert look(case, tmp_path)[Level.HINT] == set()


def test_the_corpus_is_large_enough() -> None:
    """At least 60 small actors: for each error at least three bad ones and as many good ones."""
    assert len(CASES) >= 60
    by_topic: dict[str, list[Case]] = {}
    for case in CASES:
        by_topic.setdefault(case.name.partition(":")[0], []).append(case)
    for topic, cases in by_topic.items():
        if topic not in {"hints", "unreadable", "look_alikes"}:
            assert sum(1 for case in cases if case.errors) >= 3, topic
            assert sum(1 for case in cases if not case.errors) >= 3, topic
