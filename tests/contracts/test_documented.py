"""Does README name what exists, and only that?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.services.cli import NEXT
from jobs.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()
# Read before there are settings: which file to read them from, which application to load.
BEFORE_SETTINGS = {"JOBS_ENV_FILE", "JOBS_APP"}


def test_readme_names_every_setting_and_no_other() -> None:
    """README's settings are those of the code."""
    in_code = {f"JOBS_{name.upper()}" for name in Settings.model_fields}
    in_readme = set(re.findall(r"JOBS_[A-Z_]+", README))
    assert in_readme - BEFORE_SETTINGS == in_code


def test_readme_is_short_enough_to_be_read() -> None:
    """README stays within 150 lines."""
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("folder", re.findall(r"^\| `([a-z/]+/)` \|", README, re.MULTILINE))
def test_readme_map_shows_folders_that_exist(folder: str) -> None:
    """Each folder on README's map exists."""
    assert (ROOT / folder).is_dir()


def test_make_services_leads_on_as_readme_does() -> None:
    """The commands that it prints are README's: all from `make services` to the count of the jobs."""
    in_readme = re.findall(r"^\$ (.+)$", README.partition("$ make services\n")[2], re.MULTILINE)
    printed = re.findall(r"^  (.+)$", NEXT, re.MULTILINE)
    assert printed == in_readme[: in_readme.index("jobsctl queues") + 1]
