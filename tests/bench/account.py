"""How is the time of one job laid out? From samples to microseconds a job, by layer. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.layers import IDLE, Sample, hot, inclusive, layer_of, role_of, waits_for
from tests.bench.pace import Pace

KERNEL: Final = "kernel"
_HOTTEST: Final = 15
_LONGEST: Final = 40


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

    def inclusive_us(self) -> dict[str, float]:
        """Return functions with the processor time of all that they call, the longest first."""
        found = inclusive(self.processor)
        total = sum(times for _, times in self.processor)
        return {name: times / total * self.pace.user_us for name, times in found.most_common(_LONGEST)}

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
            "inclusive_us": self.inclusive_us(),
        }

    def text(self, name: str) -> str:
        """Return what a person reads, in tables of microseconds a job, share and name."""
        total = self.pace.user_us + self.pace.system_us
        busy = {role: at for role, at in self.threads_us().items() if set(at) != {IDLE}}
        tables = [
            _table(f"{name}: processor", self.processor_us(), total),
            *(_table(f"{name}: {role}, of their time", at, sum(at.values())) for role, at in busy.items()),
            *(_table(f"{name}: hottest in {layer}", us, total) for layer, us in self.hottest_us().items()),
            _table(f"{name}: functions with all that they call", self.inclusive_us(), total),
        ]
        return "\n".join([self._summary(name, total), *tables])

    def _summary(self, name: str, total: float) -> str:
        return (
            f"\n{name}: {self.pace.jobs_per_second:,.0f} jobs/s while py-spy looks, "
            f"{total:,.1f} µs of processor time a job;\n"
            f"by the samples a job holds the interpreter's lock for {self.lock_us():,.1f} µs, "
            f"by the clock it runs {self.pace.user_us:,.1f} µs outside the kernel"
        )


def _summed(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, times in pairs:
        found[name] += times
    return found


def _table(title: str, values: dict[str, float], total: float) -> str:
    lines = (f"{value:9,.1f}  {value / total:6.1%}  {name}" for name, value in values.items())
    return "\n".join(["", title, *lines])
