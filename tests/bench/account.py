"""How is the time of one job laid out? From samples to microseconds a job, by layer. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.table import Table

from tests.bench.layers import IDLE, Sample, hot, layer_of, role_of, waits_for
from tests.bench.pace import Pace

KERNEL: Final = "kernel"
_HOTTEST: Final = 15


@dataclass(frozen=True)
class Account:
    """The time of one job.

    Parameters:
        pace: what the worker counted itself.
        processor: samples of the thread that holds the interpreter's lock.
        threads: samples of all threads, one each at every look.
        looks: how often each of the two looked.
    """

    pace: Pace
    processor: Sequence[Sample]
    threads: Sequence[Sample]
    looks: int

    def processor_us(self) -> dict[str, float]:
        """Return layer → microseconds of processor time a job; together what the worker counted."""
        seen = _summed((layer_of(frames), times) for frames, times in self.processor)
        shares = {layer: times / seen.total() for layer, times in seen.most_common()}
        return {
            **{layer: share * self.pace.user_us for layer, share in shares.items()},
            KERNEL: self.pace.system_us,
        }

    def lock_us(self) -> float:
        """Return for how long a job holds the interpreter's lock, by the samples: the cross-check.

        It should be near the processor time outside the kernel.
        """
        return self._us(sum(times for _, times in self.processor))

    def threads_us(self) -> dict[str, dict[str, float]]:
        """Return role → what its threads are at → microseconds of their time a job."""
        seen: dict[str, Counter[str]] = {}
        for frames, times in self.threads:
            at = waits_for(frames) or layer_of(frames)
            seen.setdefault(role_of(frames), Counter())[at] += times
        return {
            role: {at: self._us(times) for at, times in each.most_common()} for role, each in seen.items()
        }

    def hottest_us(self) -> dict[str, dict[str, float]]:
        """Return layer → its functions that take the most processor time → microseconds a job."""
        found = hot(self.processor)
        total = sum(times for _, times in self.processor)
        return {
            layer: {name: times / total * self.pace.user_us for name, times in each.most_common(_HOTTEST)}
            for layer, each in found.items()
        }

    def _us(self, times: int) -> float:
        return times / self.looks / self.pace.jobs_per_second * 1e6

    def record(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "pace": asdict(self.pace),
            "processor_us": self.processor_us(),
            "lock_us": self.lock_us(),
            "threads_us": self.threads_us(),
            "hottest_us": self.hottest_us(),
        }

    def tables(self, name: str) -> Iterator[Table | str]:
        """Yield what a person reads."""
        total = self.pace.user_us + self.pace.system_us
        yield (
            f"\n{name}: {self.pace.jobs_per_second:,.0f} jobs/s while py-spy looks, "
            f"{total:,.1f} µs of processor time a job;\n"
            f"by the samples a job holds the interpreter's lock for {self.lock_us():,.1f} µs, "
            f"by the clock it runs {self.pace.user_us:,.1f} µs outside the kernel"
        )
        yield from _table(f"{name}: processor, µs a job", self.processor_us(), total)
        for role, at in self.threads_us().items():
            if set(at) != {IDLE}:
                yield from _table(f"{name}: {role}, µs of thread time a job", at, sum(at.values()))
        for layer, functions in self.hottest_us().items():
            yield from _table(f"{name}: hottest in {layer}, µs a job", functions, total)


def _summed(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, times in pairs:
        found[name] += times
    return found


def _table(title: str, values: dict[str, float], total: float) -> Iterator[Table | str]:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(min_width=28, no_wrap=True)
    for column in ("µs", "share"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, value in values.items():
        table.add_row(name, f"{value:,.1f}", f"{value / total:.1%}")
    yield f"\n{title}"
    yield table
