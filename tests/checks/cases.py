"""The corpus: small actors, good and bad, with what a check has to find written beside each.

A file of `corpus/` begins with a line about it; `=== name` begins a case, whose text is `actors.py` of a
package, and `--- file.py` another file of it. `# error JOB104` stands on the finding's line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

CORPUS: Final = Path(__file__).parent / "corpus"
_EXPECTED: Final = re.compile(r"\s*# (?P<level>error|hint) (?P<code>JOB\d+)\s*$")

Place: TypeAlias = tuple[str, int, str]
"""File, line, code."""


@dataclass(frozen=True, slots=True)
class Case:
    """A small application.

    Attributes:
        name: topic and name.
        files: text by file name.
        errors: that are to be found.
        hints: that are to be found.
    """

    name: str
    files: dict[str, str]
    errors: frozenset[Place]
    hints: frozenset[Place]

    def write(self, folder: Path) -> None:
        """Write the files."""
        for name, text in self.files.items():
            (folder / name).write_text(text)


def read_corpus(folder: Path = CORPUS) -> list[Case]:
    """Return all cases."""
    return [
        _read_case(f"{file.stem}:{name}", text)
        for file in sorted(folder.glob("*.txt"))
        for name, text in _parts(file.read_text(), "===")
    ]


def _parts(text: str, mark: str) -> list[tuple[str, str]]:
    """Return what stands below each line that begins with a mark, with the rest of that line."""
    parts = re.split(rf"^{mark} (.+)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _read_case(name: str, text: str) -> Case:
    found: dict[str, set[Place]] = {"error": set(), "hint": set()}
    files = {}
    for file, source in _parts(f"--- actors.py\n{text}", "---"):
        lines = source.splitlines()
        for number, line in enumerate(lines):
            if match := _EXPECTED.search(line):
                found[match["level"]].add((file, number + 1, match["code"]))
                lines[number] = line[: match.start()]
        files[file] = "\n".join(lines) + "\n"
    return Case(name, files, frozenset(found["error"]), frozenset(found["hint"]))
