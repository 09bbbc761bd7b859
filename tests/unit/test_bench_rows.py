"""Do the parts of rows that only calculate, calculate right?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.charge_jobs import charges
from tests.bench.delays import error_share, resident_mib, spread
from tests.bench.pace import Pace, pacer
from tests.bench.pgbench import transactions_a_second
from tests.bench.table import ROWS

PRINTED = """\
number of failed transactions: {failed} (0.000%)
latency average = 1.803 ms
tps = 4436.909094 (without initial connection time)
"""


def test_rows_have_names_of_their_own() -> None:
    """`--only` tells all rows of the table apart, and each begins with the kit."""
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.contestants[0].name for row in ROWS} == {"kit"}


def test_pgbench_is_read() -> None:
    """The rate is the one without the time it takes to connect."""
    assert transactions_a_second(PRINTED.format(failed=0)) == pytest.approx(4436.909094)


@pytest.mark.parametrize("output", [PRINTED.format(failed=3), "", "number of failed transactions: 0"])
def test_a_failed_pgbench_is_no_figure(output: str) -> None:
    """Transactions that failed did not do the work."""
    with pytest.raises(RuntimeError, match="expected pgbench to print"):
        transactions_a_second(output)


@pytest.mark.parametrize(
    ("asked", "late", "share"),
    [(1.0, 0.1, 1.0), (1.0, -0.1, 1.0), (20.0, 1.2, 1.0), (20.0, 0.6, 0.5), (1.0, 0.0, 0.0)],
)
def test_early_counts_as_late_does(asked: float, late: float, share: float) -> None:
    """The allowed error is 100 ms or 6 % of the delay, whichever is more, in both directions."""
    assert error_share(asked, late) == pytest.approx(share)


@pytest.mark.parametrize("jobs", [1, 3, 200, 5_000, 5_001])
def test_delays_are_spread_over_all_jobs(jobs: int) -> None:
    """Each job has a delay of 1 to 20 s, the longest comes first, and every run has the same."""
    found = spread(jobs)
    assert sum(number for _, number in found) == jobs
    assert all(1_000 <= delay <= 20_000 for delay, _ in found)
    assert [delay for delay, _ in found] == sorted((delay for delay, _ in found), reverse=True)
    assert spread(jobs) == found


def test_resident_memory_is_read_in_mib() -> None:
    """Linux counts in KiB."""
    assert resident_mib("Name:\tpython\nVmHWM:\t  999 kB\nVmRSS:\t   51200 kB\n") == 50.0


def test_charges_name_each_usage_once() -> None:
    """Every job charges a usage that no other one does, so that each has a key of its own."""
    found = [json.loads(body)["args"] for body in charges(3)]
    assert found == [["bench", "m1"], ["bench", "m2"], ["bench", "m3"]]


def test_a_worker_reports_when_its_last_job_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock starts when a twentieth of the jobs has run; before the last one there is no report."""
    monkeypatch.setenv("BENCH_JOBS", "40")
    monkeypatch.setenv("BENCH_REPORT", str(tmp_path / "report"))
    ended = pacer()
    ended()
    assert not (tmp_path / "warm").exists()
    ended()
    assert (tmp_path / "warm").exists()
    for _ in range(37):
        ended()
    assert Pace.reported(tmp_path / "report") is None
    ended()
    pace = Pace.reported(tmp_path / "report")
    assert pace is not None
    assert pace.jobs_per_second > 0
