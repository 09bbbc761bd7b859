"""What does a check say? One finding: where, which rule, why, and the fix."""

from __future__ import annotations

from dataclasses import dataclass

from .codes import CODES, Level


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A place that breaks a rule.

    Attributes:
        file: path as it was given; empty for what is in no file, such as a broker.
        line: 1 for the first; 0 for what is in no file.
        code: of the rule, as in `codes.CODES`.
        why: one sentence.
        fix: what to do.
        last_line: where the place ends; a remark that silences may stand on any of its lines.
    """

    file: str
    line: int
    code: str
    why: str
    fix: str
    last_line: int = 0

    @property
    def level(self) -> Level:
        """Whether it is certain."""
        return CODES[self.code].level
