"""From files to findings: read, ask every rule, silence, sort."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..transport.broker import JobBroker
from ..transport.patience import Patience
from .finding import Finding
from .inspection import Inspection
from .loaded import join_loaded
from .project import Project
from .rules import RULES
from .rules.leases import check_leases
from .rules.limits import check_queues, check_time_limits, check_together
from .rules.retention import check_retention
from .silence import silence


class Checked(NamedTuple):
    """What came out.

    Attributes:
        findings: sorted by place.
        files: how many were read.
    """

    findings: list[Finding]
    files: int


def check_sources(
    paths: Iterable[Path],
    *,
    broker: JobBroker | None = None,
    patience: Patience | None = None,
) -> Checked:
    """Check files, and the Python files of folders.

    Parameters:
        paths: to check.
        broker: the loaded application's. Defaults to None: the source is all there is.
        patience: of its broker. Defaults to the defaults.
    """
    queues, patience = broker.specs if broker is not None else {}, patience or Patience()
    project = Project()
    project.add(paths)
    inspection = Inspection(project)
    if broker is not None:
        join_loaded(inspection, broker.actors.values())
    found = list(project.findings)
    for rule in RULES:
        found += rule(inspection)
    found += check_queues(inspection, patience)
    found += check_time_limits(inspection, queues)
    found += check_together(queues, patience)
    found += check_leases(inspection, broker)
    found += check_retention(broker)
    return Checked(sorted(set(silence(found, project.modules))), len(project.modules))
