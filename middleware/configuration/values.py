"""What must a setting's value look like? Types that check what the environment says."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from pydantic import BeforeValidator

from ..durations import format_duration, parse_duration


class Refusal(ValueError):
    """A value breaks a rule.

    Parameters:
        rule: completes "expected JOBS_X to be …".
        way_out: what to do about it.
        name: the setting, for a rule between settings; None for the field that is being checked.
        got: what to show as the value; None for the value as it was given.
    """

    def __init__(self, rule: str, way_out: str, *, name: str | None = None, got: object = None) -> None:
        super().__init__(rule)
        self.rule, self.way_out, self.name, self.got = rule, way_out, name, got


def whole_number(least: int, most: int, unit: str = "") -> BeforeValidator:
    """Return a check for a whole number from `least` to `most`, both included."""
    rule = f"a whole number {unit + ' ' if unit else ''}from {least} to {most}"

    def check(value: object) -> object:
        text = str(value).strip()
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise Refusal(rule, "choose a number in that range")
        return int(text)

    return BeforeValidator(check)


def duration(least: timedelta, most: timedelta) -> BeforeValidator:
    """Return a check for a length of time from `least` to `most`, both included."""
    rule = f"a duration from {format_duration(least)} to {format_duration(most)}"

    def check(value: object) -> object:
        try:
            length = value if isinstance(value, timedelta) else parse_duration(str(value))
        except ValueError:
            length = None
        if length is None or not least <= length <= most:
            raise Refusal(rule, "write it like 500ms, 30s, 5m, 1h30m or 30d (a plain number means seconds)")
        return length

    return BeforeValidator(check)


class Shown(str):
    """A value that is already written the way a person reads it."""


HIDDEN: Final = Shown("***")
"""What is shown in place of a secret."""


def _secret(value: object) -> object:
    text = str(value).strip()
    if not re.fullmatch(r"[!-~]+", text):
        raise Refusal("printable ASCII without spaces", "copy it again", got=HIDDEN)
    return text


SECRET: Final = BeforeValidator(_secret)
"""A check for a `SecretStr` that goes into an HTTP header; what it refuses is not shown."""


def shown(length: timedelta) -> str:
    """Return a duration for a refusal's `got`, unquoted."""
    return Shown(format_duration(length))
