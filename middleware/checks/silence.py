"""Which findings does a source silence, and does it say why? `# jobs: ignore[JOB101] the reason`.

A remark silences what is found on its own line, or, alone on its line, on the next line of code. Where a
finding is about a declaration of several lines, the remark may stand on any of them.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from .codes import CODES
from .finding import Finding
from .module import Module

_REMARK: Final = re.compile(
    r"#\s*jobs:\s*ignore\b(?:\[(?P<codes>[^\]]*)\])?(?P<reason>.*?)(?:\s#\s.*)?$", re.IGNORECASE
)
_NEVER: Final = {"JOB001", "JOB002"}
"""What no remark silences."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark that silences.

    Attributes:
        line: where it stands.
        covers: the line it is about.
        codes: as they are written.
        reason: what follows them.
    """

    line: int
    covers: int
    codes: tuple[str, ...]
    reason: str


def read_remarks(text: str) -> list[Remark]:
    """Return the remarks of a source, in its comments and not in its texts."""
    if "jobs:" not in text:
        return []
    found: list[Remark] = []
    waiting: list[tuple[int, re.Match[str]]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                match = _REMARK.search(token.string)
                if match and not token.line[: token.start[1]].strip():
                    waiting.append((token.start[0], match))
                elif match:
                    found.append(_remark(token.start[0], token.start[0], match))
            elif token.type not in {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}:
                found += [_remark(line, token.start[0], match) for line, match in waiting]
                waiting = []
    except (tokenize.TokenError, SyntaxError):
        pass  # a file that does not parse has a finding of its own
    return found


def _remark(line: int, covers: int, match: re.Match[str]) -> Remark:
    codes = tuple(each.strip().upper() for each in (match["codes"] or "").split(",") if each.strip())
    return Remark(line, covers, codes, match["reason"].strip(" -–—:#\t"))


def silence(findings: Iterable[Finding], modules: Iterable[Module]) -> Iterator[Finding]:
    """Yield what is not silenced, and a finding for each remark that silences badly."""
    remarks = {str(module.path): read_remarks(module.text) for module in modules}
    for finding in findings:
        if finding.code in _NEVER or not any(
            _is_about(each, finding) for each in remarks.get(finding.file, ())
        ):
            yield finding
    for file, found in remarks.items():
        for remark in found:
            why = _problem(remark)
            if why:
                fix = "write it like `# jobs: ignore[JOB106] a lost metric is no failure`"
                yield Finding(file, remark.line, "JOB002", why, fix, remark.line)


def _is_about(remark: Remark, finding: Finding) -> bool:
    last = max(finding.last_line, finding.line)
    return finding.code in remark.codes and finding.line <= remark.covers <= last


def _problem(remark: Remark) -> str:
    unknown = [each for each in remark.codes if each not in CODES or each in _NEVER]
    if not remark.codes:
        return "the remark names no code, and silences nothing"
    if unknown:
        return f"the remark names {', '.join(unknown)}, which is no code that can be silenced"
    if not remark.reason:
        return f"the remark silences {', '.join(remark.codes)} without a reason"
    return ""
