"""From files to findings: read, ask every rule, silence, sort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import dramatiq

from ..transport.patience import Patience
from ..transport.queues import Queue
from .finding import Finding
from .inspection import Inspection
from .loaded import join_loaded
from .project import Project
from .rules import RULES
from .rules.limits import check_queues, check_time_limits, check_together
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
    actors: Iterable[dramatiq.Actor[..., Any]] = (),
    queues: Mapping[str, Queue] | None = None,
    patience: Patience | None = None,
) -> Checked:
    """Check files, and the Python files of folders.

    Parameters:
        paths: to check.
        actors: those of the loaded application.
        queues: those that it declares, by name. Defaults to none.
        patience: of its broker. Defaults to the defaults.
    """
    queues, patience = queues or {}, patience or Patience()
    project = Project()
    project.add(paths)
    inspection = Inspection(project)
    join_loaded(inspection, actors)
    found = list(project.findings)
    for rule in RULES:
        found += rule(inspection)
    found += check_queues(inspection, patience)
    found += check_time_limits(inspection, queues)
    found += check_together(queues, patience)
    return Checked(sorted(set(silence(found, project.modules))), len(project.modules))
