"""How are our lines brought into a `.env` that also holds other people's?"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

NOTE = "# Written by `make services`."


def merge(text: str, values: Mapping[str, str]) -> str:
    """The text of a `.env` with these values: in place where the name stands already, else at the end.

    Every other line stays as it is. Of a name that stands more than once the last one counts, so all are set.
    """
    missing = dict(values)
    lines = []
    for line in text.splitlines():
        match = re.match(r"\s*(export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=", line)
        if match is not None and match[2] in values:
            missing.pop(match[2], None)
            line = f"{match[1] or ''}{match[2]}={values[match[2]]}"
        lines.append(line)
    if missing:
        lines += [*([""] if lines and lines[-1] else []), NOTE]
        lines += [f"{name}={value}" for name, value in missing.items()]
    return "\n".join(lines) + "\n"


def write(path: Path, values: Mapping[str, str]) -> None:
    """Merge the values into the file, in one step. A new one is for its owner's eyes: it holds passwords."""
    path = path.resolve()  # a link stays a link
    try:
        text, mode = path.read_text(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        text, mode = "", 0o600
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(merge(text, values))
    draft.replace(path)
