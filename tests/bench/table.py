"""Which rows does the benchmark table have, and in which order?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.bench import backlog, charge, connections, delays, ledger_cost, noop, observing, pruning, sending
from tests.bench.row import Row

ROWS: Final[Sequence[Row]] = (
    *sending.ROWS,
    noop.ROW,
    charge.ROW,
    ledger_cost.ROW,
    pruning.ROW,
    observing.ROW,
    *delays.ROWS,
    connections.ROW,
    backlog.ROW,
)
