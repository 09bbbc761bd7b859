from __future__ import annotations

from pathlib import Path

import pytest

from middleware.checks import Finding, check_sources

ACTOR = """
import dramatiq

{above}@dramatiq.actor(queue_name="critical", idempotency_key="audit:{{event_id}}"){decorator}
def audit(
    event_id: str,
    {before}agent: dict,{beside}
) -> None: ...
"""


def look(folder: Path, **remarks: str) -> list[str]:
    """Return the codes that are found in an actor with remarks."""
    parts = {name: remarks.get(name, "") for name in ("above", "decorator", "before", "beside")}
    (folder / "actors.py").write_text(ACTOR.format(**parts))
    return [each.code for each in check_sources([folder]).findings]


@pytest.mark.parametrize(
    "remark",
    [
        "# jobs: ignore[JOB103] meant as it was",
        "#jobs:ignore[job103]: meant as it was",
        "# jobs: ignore[JOB101, JOB103] meant as it was",
        "# noqa: X1  # jobs: ignore[JOB103] meant as it was",
    ],
)
def test_a_remark_with_a_reason_silences_its_line(tmp_path: Path, remark: str) -> None:
    """On the line itself, or alone above it."""
    assert look(tmp_path, beside=f"  {remark}") == []
    assert look(tmp_path, before=f"{remark}\n    # and more\n    ") == []


@pytest.mark.parametrize(
    ("remark", "codes"),
    [
        ("# jobs: ignore[JOB103]", ["JOB002"]),
        ("# jobs: ignore[JOB103] -", ["JOB002"]),
        ("# jobs: ignore", ["JOB002", "JOB103"]),
        ("# jobs: ignore because I say so", ["JOB002", "JOB103"]),
        ("# jobs: ignore[JOB104] another rule", ["JOB103"]),
        ("# jobs: ignore[JOB002] silence the silence", ["JOB002", "JOB103"]),
        ("# jobs: ignore[] nothing", ["JOB002", "JOB103"]),
    ],
)
def test_a_remark_that_silences_badly_is_a_finding(tmp_path: Path, remark: str, codes: list[str]) -> None:
    """Without a reason or a known code; and one for another rule silences nothing here."""
    assert sorted(look(tmp_path, beside=f"  {remark}")) == codes


def test_a_remark_elsewhere_silences_nothing(tmp_path: Path) -> None:
    """Above the declaration, the remark is not about a parameter of it."""
    assert look(tmp_path, above="# jobs: ignore[JOB103] meant\n") == ["JOB103"]
    assert look(tmp_path, decorator="  # jobs: ignore[JOB103] meant") == ["JOB103"]


@pytest.mark.parametrize(
    "content",
    [
        b"def broken(:\n",
        b"\xff\xfe\x00",
        b"# -*- coding: klingon -*-\n",
        b"x = 1\x00\n",
        b"# caf\xe9\n",
        b"x = " + b"(" * 500 + b")" * 500,
        b"x = " + b"-" * 30_000 + b"1",
    ],
    ids=["syntax", "bytes", "encoding", "nul", "latin", "parentheses", "depth"],
)
def test_a_file_that_is_no_python_is_a_finding(tmp_path: Path, content: bytes) -> None:
    """Whatever is in a file, there is a finding with its name, and no traceback."""
    file = tmp_path / "broken.py"
    file.write_bytes(content)
    findings: list[Finding] = check_sources([tmp_path]).findings
    assert [(each.code, each.file) for each in findings] == [("JOB001", str(file))]


def test_a_folder_that_cannot_be_listed_is_a_finding(tmp_path: Path) -> None:
    """What is not there, or not to be read, keeps nothing else from being checked."""
    (tmp_path / "broken.py").write_text("def broken(:")
    gone = tmp_path / "gone"
    findings = check_sources([gone, tmp_path]).findings
    assert [(each.code, each.file) for each in findings] == [
        ("JOB001", str(tmp_path / "broken.py")),
        ("JOB001", str(gone)),
    ]
