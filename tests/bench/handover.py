"""How does a worker hand over what it measured? All at once: who looks finds no file, or the whole one."""

from __future__ import annotations

from pathlib import Path


def hand_over(report: Path, text: str) -> None:
    """Write a worker's report."""
    half = report.with_suffix(".half")
    half.write_text(text)
    half.rename(report)


def handed_over(report: Path) -> str | None:
    """Return a worker's report, None as long as there is none."""
    return report.read_text() if report.exists() else None
