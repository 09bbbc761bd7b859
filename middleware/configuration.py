"""What must a setting's value look like, and what is somebody told who got it wrong?

The building blocks of an application's settings class: types that check what the environment says, and
`load`, which turns everything that is wrong into one `ConfigurationError` of the form
`expected JOBS_X to be <rule>, got: <value>; <way out>`, a line per setting.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import BeforeValidator, ValidationError
from pydantic_settings import BaseSettings
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from .durations import format_duration, parse_duration
from .errors import ConfigurationError

INLINE: Final = "inline://"
"""The broker URL that means: in this process, without a server."""
ENV_FILE: Final = "JOBS_ENV_FILE"
"""Names the file to read instead of `.env`; set but empty means none."""
_NOT_SETTINGS: Final = ("JOBS_APP", ENV_FILE)
_OF_TESTS: Final = "JOBS_TEST_"  # where tests find their services; JOBS_TEST_MANAGEMENT_URL is no misspelling
_LIKE: Final = 0.88  # "JOBS_MAX_DELEY" is meant to be a setting; a Kubernetes service's JOBS_PORT is not.

_log: Final = logging.getLogger(__name__)

S = TypeVar("S", bound=BaseSettings)


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


def _broker_url(value: object) -> str:
    urls = [part.strip() for part in str(value).split(";")]
    if urls == [INLINE] or all(_has_host(url, ("amqp", "amqps")) for url in urls):
        return ";".join(urls)
    raise Refusal(
        f"{INLINE} or amqp://user:password@host:port/vhost, several separated by ';'",
        f"use {INLINE} to run without a server, or `make services` to get RabbitMQ and a .env file",
    )


def _database_url(value: object) -> str:
    text = str(value)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is not None and url.drivername in ("postgresql", "postgresql+psycopg") and url.database:
        return text
    if url is not None and url.drivername == "sqlite" and url.database not in (None, "", ":memory:"):
        return text
    raise Refusal(
        "postgresql+psycopg://user:password@host:port/database or sqlite:///file",
        "name the driver as shown and, for SQLite, a file (threads do not share a database in memory)",
    )


def _http_url(value: object) -> str:
    if _has_host(str(value), ("http", "https")):
        return str(value).rstrip("/")
    raise Refusal("an http:// or https:// URL with a host", "write it like http://127.0.0.1:8080")


BROKER_URL: Final = BeforeValidator(_broker_url)
DATABASE_URL: Final = BeforeValidator(_database_url)
HTTP_URL: Final = BeforeValidator(_http_url)


def _has_host(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def without_password(url: str) -> str:
    """Return the text with the password of every URL in it replaced by `***`."""
    return re.sub(r"(://[^:/@;\s]*):[^@;\s]*@", r"\1:***@", url)


def load(settings: type[S]) -> S:
    """Read settings from the environment and from `.env`, or from the file that JOBS_ENV_FILE names.

    The environment wins over the file; an empty value counts as absent.

    Raises:
        ConfigurationError: a value breaks its rule, a name is misspelt, or the named file is absent.
    """
    prefix = str(settings.model_config.get("env_prefix"))
    file = _env_file()
    known = {prefix + field.upper() for field in settings.model_fields}
    problems = list(_misspelt(known, prefix, file))
    try:
        loaded = settings(_env_file=file)
    except ValidationError as error:
        problems += [_explain(details, prefix) for details in error.errors()]
    if problems:
        _refuse(problems)
    return loaded


@contextmanager
def refusing_start() -> Iterator[None]:
    """Make a wrong setting end a worker's start with one line and exit code 2, without a traceback.

    Anywhere but in the `dramatiq` command the error is raised as it is.
    """
    try:
        yield
    except ConfigurationError as error:
        if "dramatiq.cli" not in sys.modules:  # only that command loads it
            raise
        for problem in str(error).splitlines():
            _log.critical("Refusing to start: %s", problem)
        raise SystemExit(2) from None


def _refuse(problems: list[str]) -> NoReturn:
    raise ConfigurationError("\n".join(problems)) from None


def _env_file() -> Path | None:
    named = os.environ.get(ENV_FILE)
    if named is None:
        return Path(".env")
    if named and not Path(named).is_file():
        rule = f"expected {ENV_FILE} to be an existing file"
        _refuse([f"{rule}, got: {named!r}; create it, or set it empty for none"])
    return Path(named) if named else None


def _misspelt(known: set[str], prefix: str, file: Path | None) -> Iterator[str]:
    written = dotenv_values(file) if file is not None and file.is_file() else {}
    for name in sorted({*os.environ, *written} - known):
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=_LIKE)
        is_ours = name.startswith(prefix) and name not in _NOT_SETTINGS and not name.startswith(_OF_TESTS)
        if nearest and is_ours:
            value = os.environ.get(name, written.get(name))
            shown = without_password(repr(value))
            yield f"expected {name} to be a known setting, got: {name}={shown}; did you mean {nearest[0]}?"


def _explain(details: Any, prefix: str) -> str:
    refusal = details.get("ctx", {}).get("error")
    name = prefix + "_".join(str(part) for part in details["loc"]).upper()
    got: object = details["input"]
    rule, way_out = details["msg"], "see the setting's docstring"
    if isinstance(refusal, Refusal):
        rule, way_out, name = refusal.rule, refusal.way_out, refusal.name or name
        got = got if refusal.got is None else refusal.got
    shown = got if isinstance(got, _Shown) else without_password(repr(got))
    return f"expected {name} to be {rule}, got: {shown}; {way_out}"


class _Shown(str):
    """A value that is already written the way a person reads it."""


def shown(length: timedelta) -> str:
    """Return a duration for a refusal's `got`, unquoted."""
    return _Shown(format_duration(length))
