"""How far beyond its target is each row? One bar for each target, and one line at 1: on the target."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.report import bound, number
from tests.bench.rounds import Measured

_REACHED: Final = "#2a7f62"
_NOT_REACHED: Final = "#b5432f"


@dataclass(frozen=True)
class Bar:
    """One target that was measured.

    Attributes:
        label: row and ratio.
        text: the median and the bound.
        margin: median against bound, 1.0 is on it; more is better.
        low: the worst round's margin.
        high: the best round's margin.
    """

    label: str
    text: str
    margin: float
    low: float
    high: float


def missing() -> str:
    """Say what has to be installed for a chart; empty if nothing."""
    if importlib.util.find_spec("matplotlib") is None:
        return "matplotlib, which `make bench` installs from deploy/requirements-bench.lock"
    return ""


def bars(all_measured: Sequence[Measured]) -> list[Bar]:
    """Return a bar for each target that was measured, in the table's order."""
    found = []
    for measured in all_measured:
        for target in measured.row.targets:
            values = target.values(measured.samples)
            if values is None:
                continue
            margins = [target.margin(value) for value in values]
            median = statistics.median(values)
            text = f"{number(median)}, target {bound(target, measured.row)}"
            label = f"{measured.row.name}: {target.name}"
            found.append(Bar(label, text, target.margin(median), min(margins), max(margins)))
    return found


def draw(all_measured: Sequence[Measured], file: Path) -> None:
    """Draw the chart; the file's ending decides about SVG or PNG.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        ValueError: matplotlib does not know the file's ending.
    """
    from matplotlib.figure import Figure  # here: a run without a chart does without matplotlib

    found = bars(all_measured)[::-1]  # matplotlib counts from below
    figure = Figure(figsize=(10, 1.5 + 0.45 * len(found)), layout="constrained")
    axes = figure.subplots()
    margins = [bar.margin for bar in found]
    errors = [[bar.margin - bar.low for bar in found], [bar.high - bar.margin for bar in found]]
    colours = [_REACHED if margin >= 1 else _NOT_REACHED for margin in margins]
    labels = [bar.label for bar in found]
    axes.barh(labels, margins, xerr=errors, color=colours, height=0.6, capsize=3, ecolor="#444444")
    axes.axvline(1.0, color="black", linewidth=1)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # the line at 1 may run behind a text
    look = {"textcoords": "offset points", "va": "center", "size": 9, "bbox": box}
    for place, bar in enumerate(found):
        axes.annotate(bar.text, (bar.high, place), (8, 0), **look)
    axes.set_xlim(0, 1.5 * max([bar.high for bar in found], default=1.0))
    axes.set_xlabel("measured ÷ target (for «at most», target ÷ measured): right of the line is reached")
    axes.set_title("Median of the rounds; the thin line spans the lowest and the highest round")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file)
