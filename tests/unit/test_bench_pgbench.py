"""Does pgbench run the statements of a charge, as the kit and the application word them?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import make_url

from jobs import credit
from middleware.effects import postgresql
from tests.bench import pgbench

_FOLDER = Path(pgbench.__file__).parent
_VALUE = re.compile(
    r"%\(\w+\)s(::\w+)?"  # SQLAlchemy's parameter, with its cast
    r"|'[^']*'|%[db]|(?<!:):\w+|\b\d+\b"  # text, the ledger's values, pgbench's variables, numbers
)


def _statements(script: str) -> list[str]:
    """Return the statements in one spelling, with ? for each value."""
    lines = (line for line in script.splitlines() if not line.startswith(("--", r"\set ")))
    ended = re.sub(r"\\[ga]set", ";", " ".join(lines)).replace(r"\;", ";")
    valued = re.sub(r"\?( \|\| \?)+", "?", _VALUE.sub("?", ended))
    return [" ".join(each.split()) for each in valued.split(";") if each.strip()]


def _shipped() -> list[str]:
    dialect = make_url("postgresql+psycopg://").get_dialect()()
    charge = [str(each.compile(dialect=dialect)) for each in (credit._WRITE_ENTRY, credit._TAKE_CREDIT)]
    return _statements(";".join([postgresql._OPEN.decode(), *charge, postgresql._COMMIT.decode()]))


def _is_work(statement: str) -> bool:
    """Whether it is neither a limit of waiting nor the check before the commit."""
    return not statement.startswith(("SET LOCAL ", "SELECT (CASE "))


@pytest.mark.parametrize(
    ("script", "runs"), [(pgbench.AS_SENT, lambda statement: True), (pgbench.PREPARED, _is_work)]
)
def test_pgbench_runs_what_is_shipped(script: tuple[str, str], runs: Callable[[str], bool]) -> None:
    """One file has every statement of a charge, the other all but the limits and the check, in order."""
    assert _statements((_FOLDER / script[0]).read_text()) == [each for each in _shipped() if runs(each)]
