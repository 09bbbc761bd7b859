"""What is kept of a run? Everything that another run on another machine is compared by, as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from tests.bench.rounds import Measured
from tests.bench.row import Target


def record(all_measured: Iterable[Measured], circumstances: dict[str, Any]) -> dict[str, Any]:
    """Return what `--json` writes.

    Parameters:
        all_measured: the rows.
        circumstances: versions, machine and date; see `tests.bench.machine`.
    """
    return {**circumstances, "rows": {measured.row.name: _row(measured) for measured in all_measured}}


def _row(measured: Measured) -> dict[str, Any]:
    row = measured.row
    return {
        "what": row.what,
        "unit": row.unit,
        "samples": measured.samples,
        "absent": measured.absent,
        "failed": measured.failed,
        "targets": [_target(target, measured) for target in row.targets],
    }


def _target(target: Target, measured: Measured) -> dict[str, Any]:
    values = target.values(measured.samples)
    return {
        "of": target.of,
        "to": target.to,
        "at_least": target.at_least,
        "at_most": target.at_most,
        "values": values,
        "median": None if values is None else statistics.median(values),
        "reached": target.is_reached(measured.samples),
    }
