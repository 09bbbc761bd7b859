"""Do table, record and chart say what was measured?"""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from tests.bench import chart, report
from tests.bench.record import record
from tests.bench.rounds import Measured
from tests.bench.row import Contestant, Row, Target

ROW = Row(
    name="send-idle",
    what="p99 of a send",
    unit="ms",
    contestants=[Contestant(name=name, measure=lambda _services: 0.0) for name in ("kit", "stock", "rival")],
    targets=[Target(at_most=10), Target(to="stock", at_least=2), Target(to="rival", at_least=1)],
)
MEASURED = Measured(
    ROW, {"kit": [4.0, 5.0, 8.0], "stock": [4.0, 4.0, 4.0]}, absent={"rival": "install rival"}
)


def lines(table: Table) -> list[list[str]]:
    """The cells of a table as it is printed, row by row."""
    output = StringIO()
    Console(file=output, width=120).print(table)
    return [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in output.getvalue().splitlines()
        if "│" in line
    ]


def test_figures_show_each_contestant() -> None:
    """Each contestant has its median, lowest and highest figure, or the reason why it has none."""
    assert lines(report.figures([MEASURED])) == [
        ["send-idle", "kit", "5.00", "4.00", "8.00", "ms"],
        ["", "stock", "4.00", "4.00", "4.00", "ms"],
        ["", "rival", "–", "–", "–", "absent"],
    ]


def test_targets_show_whether_they_are_reached() -> None:
    """A target shows its median with the spread, its bound, and one of three words."""
    assert lines(report.targets([MEASURED])) == [
        ["send-idle", "kit", "5.00 (4.00–8.00)", "≤ 10 ms", "reached"],
        ["send-idle", "kit ÷ stock", "1.25 (1.00–2.00)", "≥ 2", "not reached"],
        ["send-idle", "kit ÷ rival", "–", "≥ 1", "not measured"],
    ]


def test_conditions_say_what_each_row_measures() -> None:
    """A reader of the figures needs no look at `--list`."""
    assert lines(report.conditions([MEASURED])) == [["send-idle", "p99 of a send"]]


def test_figures_of_a_failed_contestant_are_marked() -> None:
    """A contestant that failed is not taken for one that is not there."""
    failed = Measured(ROW, failed={"kit": "RuntimeError: no broker"})
    assert [line[-1] for line in lines(report.figures([failed]))] == ["failed", "absent", "absent"]


@pytest.mark.parametrize(
    ("value", "text"), [(12345.6, "12,346"), (999.94, "999.9"), (45.12, "45.1"), (2.613, "2.61")]
)
def test_numbers_have_the_digits_that_matter(value: float, text: str) -> None:
    """Large figures have no decimals, ratios two."""
    assert report.number(value) == text


def test_the_record_holds_all_that_was_measured() -> None:
    """The JSON names circumstances, samples, who is absent, and each target with its ratios."""
    kept = json.loads(json.dumps(record([MEASURED], {"date": "2030-01-01"})))
    row = kept["rows"]["send-idle"]
    assert kept["date"] == "2030-01-01"
    assert row["samples"] == {"kit": [4.0, 5.0, 8.0], "stock": [4.0, 4.0, 4.0]}
    assert row["absent"] == {"rival": "install rival"}
    assert [(target["median"], target["reached"]) for target in row["targets"]] == [
        (5.0, True),
        (1.25, False),
        (None, None),
    ]


def test_the_chart_has_a_bar_for_each_measured_target() -> None:
    """Bars are relative to the bound, whichever way it points; what was not measured has none."""
    assert [(bar.label, bar.margin, bar.low, bar.high) for bar in chart.bars([MEASURED])] == [
        ("send-idle: kit", 2.0, 1.25, 2.5),
        ("send-idle: kit ÷ stock", 0.625, 0.5, 1.0),
    ]
