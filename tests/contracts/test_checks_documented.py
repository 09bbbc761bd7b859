"""Do the rules of the self-check, their table, and the application that is shipped agree?"""

from __future__ import annotations

import re

import jobs
from middleware.checks import CODES, check_sources
from middleware.transport.broker import JobBroker

from .sources import ROOT

TABLE = re.findall(
    r"^\| `(JOB\d+)` \| (\w+) \| (.+) \|$", (ROOT / "middleware/checks/README.md").read_text(), re.MULTILINE
)


def test_the_table_lists_every_rule_and_no_other() -> None:
    """README's table is the catalogue, in its order and words."""
    assert [(name, code.level.value, code.title) for name, code in CODES.items()] == TABLE


def test_every_rule_is_used() -> None:
    """Each code is given to a finding somewhere."""
    text = "".join(
        file.read_text()
        for room in ("checks", "cli")
        for file in (ROOT / "middleware" / room).rglob("*.py")
        if file.name != "codes.py"
    )
    assert [name for name in CODES if f'"{name}"' not in text] == []


def test_the_shipped_application_has_no_finding() -> None:
    """Neither errors nor hints, loaded and read; what is silenced says why."""
    broker = jobs.charge_credit.broker
    assert isinstance(broker, JobBroker)
    findings, files = check_sources([ROOT / "jobs"], broker=broker)
    assert findings == []
    assert files > 40
