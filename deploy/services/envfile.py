"""How are our lines brought into a `.env` that also holds other people's, and out of it?"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

NOTE = "# Written by `make services`."


_ASSIGNMENT = re.compile(r"\s*(export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")


def merge(text: str, values: Mapping[str, str]) -> str:
    """The text of a `.env` with these values: in place where the name stands already, else at the end.

    Every other line stays as it is. Of a name that stands more than once the last one counts, so all are set.
    """
    missing = dict(values)
    lines = []
    for line in text.splitlines():
        match = _ASSIGNMENT.match(line)
        if match is not None and match[2] in values:
            missing.pop(match[2], None)
            line = f"{match[1] or ''}{match[2]}={values[match[2]]}"
        lines.append(line)
    if missing:
        lines += [*([""] if lines and lines[-1] else []), NOTE]
        lines += [f"{name}={value}" for name, value in missing.items()]
    return "\n".join(lines) + "\n"


def without(text: str, values: Mapping[str, str]) -> str:
    """The text of a `.env` without our note and the lines that hold these values; empty if no more was in it.

    A line of one of these names that holds something else is somebody's own by now, and stays.
    """
    ours = {NOTE, *(f"{name}={value}" for name, value in values.items())}
    lines = [line for line in text.splitlines() if line.strip().removeprefix("export ") not in ours]
    rest = "\n".join(lines).rstrip()
    return f"{rest}\n" if rest else ""


def write(path: Path, values: Mapping[str, str]) -> None:
    """Merge the values into the file, in one step. A new one is for its owner's eyes: it holds passwords."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        text = ""
    _replace(path, merge(text, values))


def remove(path: Path, values: Mapping[str, str]) -> str:
    """Take the values out of the file, and delete it if nothing else is in it; what was done, in words."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return f"No {path} to take addresses out of"
    rest = without(text, values)
    if rest.rstrip() == text.rstrip():
        return f"Left {path} as it is: none of these addresses is in it"
    if not rest and not path.is_symlink():
        path.unlink()
        return f"Removed {path}: nothing else was in it"
    _replace(path, rest)
    return f"Took their addresses out of {path}; your own lines stay"


def _replace(path: Path, text: str) -> None:
    path = path.resolve()  # a link stays a link
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = 0o600
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
    draft.replace(path)
