"""`jobsctl check`: the questions to ask before a new job, asked by a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ..checks import Finding, Level, check_sources
from ..checks.live_broker import check_broker
from ..checks.live_database import check_database
from ..errors import DeclarationError
from ..store import Store
from ..transport.broker import JobBroker
from ..transport.patience import Patience
from ..transport.quorum import QuorumBroker
from .checked import CheckedApplication, load_checked

_SEEN_AT_DECLARATION: Final = {"JOB101", "JOB102", "JOB109", "JOB111"}
"""What refuses a declaration, and so the loading, too."""


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            exists=True, metavar="[PATH]...", help="More files and folders, such as who sends jobs."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object with every finding.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Ask the broker and the database, too.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Of your workers, as `dramatiq --threads`.")] = 8,
) -> None:
    """Check the application's actors, who sends to them, and its limits; exit code 1 if there is an error."""
    application = load_checked(paths or ())
    findings, files = _look(application, threads)
    if live:
        findings += _ask(application, threads)
    errors = sum(1 for each in findings if each.level is Level.ERROR)
    if as_json:
        counted = {"errors": errors, "hints": len(findings) - errors, "files": files}
        typer.echo(json.dumps({**counted, "findings": [_row(each) for each in findings]}, indent=2))
    else:
        for each in findings:
            typer.echo(_told(each))
        typer.echo(_summary(errors, len(findings) - errors, files))
    if errors:
        raise typer.Exit(1)


def _look(application: CheckedApplication, threads: int) -> tuple[list[Finding], int]:
    broker = application.broker
    found, files = check_sources(
        application.paths,
        broker=broker,
        patience=_patience(broker, threads),
    )
    return sorted([*found, *_not_said_twice(application, found)]), files


def _ask(application: CheckedApplication, threads: int) -> list[Finding]:
    """Ask the services of an application that was loaded."""
    found: list[Finding] = []
    if isinstance(application.broker, QuorumBroker):
        found += check_broker(application.broker)
    elif application.broker is not None:
        why = (
            "the broker was not asked: JOBS_BROKER_URL is inline://, which keeps jobs in the sender's process"
        )
        found.append(Finding("", 0, "JOB307", why, "set JOBS_BROKER_URL to the broker that is meant"))
    store = getattr(application.module, "store", None)
    if isinstance(store, Store) and application.module is not None:
        found += check_database(store, application.module.__name__, threads)
    else:
        why = "the database was not asked: the application offers no store"
        found.append(Finding("", 0, "JOB307", why, "import `store` in the module that JOBS_APP names"))
    return found


def _patience(broker: JobBroker | None, threads: int) -> Patience:
    """Take the broker's settings; the inline one has none, and is checked as if the defaults held."""
    if isinstance(broker, QuorumBroker):
        return Patience(threads, broker.consumer_timeout, broker.grace)
    return Patience(threads)


def _not_said_twice(application: CheckedApplication, found: Sequence[Finding]) -> list[Finding]:
    """Leave out that the application cannot be loaded where a finding says why already."""
    codes = {each.code for each in found}
    is_said = (isinstance(application.error, DeclarationError) and codes & _SEEN_AT_DECLARATION) or (
        isinstance(application.error, SyntaxError) and "JOB001" in codes
    )
    return [] if is_said else application.findings


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "level": finding.level.value,
        "file": finding.file or None,
        "line": finding.line or None,
        "why": finding.why,
        "fix": finding.fix,
    }


def _told(finding: Finding) -> str:
    line = f":{finding.line}" if finding.line else ""
    place = f"{finding.file}{line}: " if finding.file else ""
    level = "error" if finding.level is Level.ERROR else "hint, may be wrong"
    return f"{place}{finding.code} {level}: {finding.why}\n    fix: {finding.fix}"


def _summary(errors: int, hints: int, files: int) -> str:
    if not errors and not hints:
        return f"no findings in {_count(files, 'file')}"
    return f"{_count(errors, 'error')}, {_count(hints, 'hint')} in {_count(files, 'file')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
