"""Is every file where a reader looks for it, and short enough to be read?"""

from __future__ import annotations

import inspect
import subprocess

import pytest

import middleware

from .sources import ROOT, sources

TOP = {
    *("jobs", "middleware", "deploy", "tests"),
    *("pyproject.toml", "docker-compose.yml", "Makefile", "README.md", "CHANGELOG.md"),
}
LATER = {"grafana"}
LONGEST = 300
LONGER = {
    "tests/integration/test_ledger_session.py": "one table of what a session refuses, on both databases",
}
"""File → why it is longer than others."""


def test_the_top_level_is_what_it_should_be() -> None:
    """Beside dotfiles, the top level holds the known files and folders and no others."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = {line.split("/")[0] for line in listed.splitlines()}
    assert {name for name in names if not name.startswith(".")} - LATER == TOP


def test_files_are_short() -> None:
    """No file is longer than 300 lines, but those that are listed with a reason."""
    lengths = {
        str(file): len((ROOT / file).read_text().splitlines())
        for file in sources("middleware", "jobs", "deploy", "tests")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST and name not in LONGER} == {}


def test_every_module_says_what_it_answers() -> None:
    """Each module of library, application and deployment begins with a docstring."""
    modules = [file for file in sources("middleware", "jobs", "deploy") if (ROOT / file).stat().st_size]
    assert [str(file) for file in modules if not (ROOT / file).read_text().startswith('"""')] == []


@pytest.mark.parametrize("name", middleware.__all__)
def test_public_names_are_documented(name: str) -> None:
    """Each public name has a docstring of its own: neither inherited nor made up by `dataclass`."""
    thing = getattr(middleware, name)
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert text
    assert not text.startswith(f"{name}(")
