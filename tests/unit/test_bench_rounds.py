"""Who is measured in which round, and what becomes of one that is absent or fails?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench.choosing import chosen
from tests.bench.rounds import measure
from tests.bench.row import Contestant, Row
from tests.bench.services import Services

NOWHERE = Services("amqp://", "http://", "postgresql://")


def silent(_line: str) -> None:
    """Print nothing."""


def row(*contestants: Contestant, name: str = "noop", rounds: int | None = None) -> Row:
    """A row that reaches for nothing."""
    return Row(name=name, what="", unit="jobs/s", contestants=contestants, rounds=rounds)


def returning(name: str, calls: list[str]) -> Contestant:
    """A contestant that notes when it is measured."""

    def run(_services: Services) -> float:
        calls.append(name)
        return float(len(calls))

    return Contestant(name=name, measure=run)


def failing(after: int) -> Callable[[Services], float]:
    """A measurement that works so many times."""
    figures = iter([1.0] * after)

    def run(_services: Services) -> float:
        for figure in figures:
            return figure
        raise RuntimeError("no broker\nTraceback\nOSError: refused")

    return run


def test_another_contestant_begins_each_round() -> None:
    """Each contestant runs once a round; who is first and who is last changes."""
    calls: list[str] = []
    measured = measure(row(*(returning(name, calls) for name in "abc")), NOWHERE, 3, silent)
    assert "".join(calls) == "abcbcacab"
    assert {name: len(figures) for name, figures in measured.samples.items()} == {"a": 3, "b": 3, "c": 3}


def test_a_row_may_ask_for_fewer_rounds() -> None:
    """Work that takes minutes is not done more often than its row says."""
    calls: list[str] = []
    measure(row(returning("a", calls), rounds=2), NOWHERE, 5, silent)
    assert len(calls) == 2


def test_an_absent_contestant_is_named_once_with_what_to_install() -> None:
    """Without its programs a contestant is left out with one line; the others are measured."""
    lines: list[str] = []
    absent = Contestant(name="rival", measure=failing(0), missing=lambda: "install rival")
    measured = measure(row(returning("kit", []), absent), NOWHERE, 2, lines.append)
    assert measured.absent == {"rival": "install rival"}
    assert [line for line in lines if "rival" in line] == ["noop: without rival: install rival"]
    assert (list(measured.samples), measured.failed) == (["kit"], {})


def test_a_failing_contestant_stops_no_other() -> None:
    """After its failure a contestant has no figures and takes no part; its error is kept whole."""
    lines: list[str] = []
    rival = Contestant(name="rival", measure=failing(1))
    measured = measure(row(returning("kit", []), rival), NOWHERE, 3, lines.append)
    assert (list(measured.samples), len(measured.samples["kit"])) == (["kit"], 3)
    assert measured.failed == {"rival": "RuntimeError: no broker\nTraceback\nOSError: refused"}
    assert [line for line in lines if "failed" in line] == [
        "noop, round 2: rival failed: RuntimeError: no broker … OSError: refused"
    ]


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ("", ["send-idle", "send-one-thread", "noop"]),
        ("send", ["send-idle", "send-one-thread"]),
        ("noop, send-idle", ["send-idle", "noop"]),
    ],
)
def test_rows_are_chosen_by_name_or_first_word(only: str, names: list[str]) -> None:
    """`--only` takes names and their first words, and keeps the table's order."""
    rows = [row(name=name) for name in ("send-idle", "send-one-thread", "noop")]
    assert [each.name for each in chosen(rows, only)] == names


def test_an_unknown_row_is_refused_with_the_known_ones() -> None:
    """A word that means no row ends with the names that there are."""
    with pytest.raises(ValueError, match="got: 'sen'; there are noop"):
        chosen([row()], "sen")
