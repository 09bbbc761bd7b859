"""Do the examples in docstrings show what really comes out?"""

from __future__ import annotations

import doctest
import importlib

import pytest

from .sources import ROOT, sources

WITH_EXAMPLES = [
    ".".join(file.with_suffix("").parts)
    for file in sources("middleware", "jobs")
    if ">>> " in (ROOT / file).read_text()
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run_as_shown(name: str) -> None:
    """Every example of a module prints what its docstring says."""
    result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert result.attempted > 0
    assert result.failed == 0


def test_there_are_examples() -> None:
    """The list above is not empty by mistake."""
    assert "middleware.durations" in WITH_EXAMPLES
