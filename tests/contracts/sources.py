"""Which files are the code?"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent


def sources(*folders: str) -> list[Path]:
    """Return the Python files of top-level folders, relative to the repository's."""
    found = [path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(found)
