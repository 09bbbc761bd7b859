"""The rules, each module one question. A rule takes an `Inspection` and yields findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ..finding import Finding
from ..inspection import Inspection
from .arguments import check_arguments
from .engines import check_engines
from .fresh import check_sends
from .hints import check_identifying, check_lists, check_loops, check_order, check_results
from .keyless import check_keyless
from .keys import check_reasons, check_templates
from .swallowing import check_swallowing
from .transactions import check_transactions

Rule: TypeAlias = Callable[[Inspection], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    check_templates,
    check_arguments,
    check_engines,
    check_swallowing,
    check_sends,
    check_keyless,
    check_reasons,
    check_identifying,
    check_lists,
    check_loops,
    check_results,
    check_order,
    check_transactions,  # last: it finds out what functions are given, which the others do not ask for
)
"""Rules that look at the source alone."""
