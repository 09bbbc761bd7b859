"""Does the full-text index know each resource's newest version, and no other?"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.sample.resources import word_of

from ..findings import Check, Findings, check, differ
from ..workload import VERSIONS


def resources(findings: Findings) -> list[Check]:
    """Return the checks of the index."""
    return [check("every resource is found at its newest version", _found(findings))]


def _found(findings: Findings) -> Iterator[str]:
    for resource in findings.workload.resource_ids():
        for version in range(1, VERSIONS + 1):
            word = word_of(resource, version)
            expected = [(resource, version)] if version == VERSIONS else []
            yield from differ(f"found for {word}", expected, findings.after.found.get(word))
