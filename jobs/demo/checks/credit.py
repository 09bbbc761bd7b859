"""Was each usage charged once?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..findings import Check, Findings, check, differ
from ..workload import TASK


def credit(findings: Findings) -> list[Check]:
    """Return the checks of the charges."""
    return [
        check("each usage was charged once", _entries(findings)),
        check("every account's balance before − charged = after", _balances(findings)),
    ]


def _entries(findings: Findings) -> Iterator[str]:
    after = findings.after
    charges = {f"{task}:{message}" for task, message in findings.workload.charges()}
    payable = {each: after.usages[each] for each in charges if each.startswith(f"{TASK}:")}
    times = Counter(reference for reference, _, _ in after.entries)
    for reference in sorted(payable.keys() | times.keys()):
        yield from differ(f"entries of {reference}", int(reference in payable), times[reference])
    for reference, account, amount in after.entries:
        if reference in payable:
            yield from differ(f"entry {reference}", payable[reference], (account, amount))


def _balances(findings: Findings) -> Iterator[str]:
    charged = findings.after.charged()
    for account, balance in sorted(findings.before.balances.items()):
        now = findings.after.balances.get(account)
        yield from differ(f"balance of {account}", balance - charged[account], now)
