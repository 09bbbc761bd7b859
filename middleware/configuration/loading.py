"""Where do settings come from, and what is somebody told who got one wrong?

Everything that is wrong becomes one `ConfigurationError` of the form
`expected JOBS_X to be <rule>, got: <value>; <way out>`, a line per setting.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from ..errors import ConfigurationError
from .values import HIDDEN, Refusal, Shown

ENV_FILE: Final = "JOBS_ENV_FILE"
"""Names the file to read instead of `.env`; set but empty means none."""
_NOT_SETTINGS: Final = ("JOBS_APP", ENV_FILE)
_OF_TESTS: Final = "JOBS_TEST_"  # where tests find their services; JOBS_TEST_MANAGEMENT_URL is no misspelling
_LIKE: Final = 0.88  # "JOBS_MAX_DELEY" is meant to be a setting; a Kubernetes service's JOBS_PORT is not.

S = TypeVar("S", bound=BaseSettings)


def load(settings: type[S]) -> S:
    """Read settings from the environment and from `.env`, or from the file that JOBS_ENV_FILE names.

    The environment wins over the file; an empty value counts as absent.

    Raises:
        ConfigurationError: a value breaks its rule, a name is misspelt, or the named file is absent.
    """
    prefix = str(settings.model_config.get("env_prefix"))
    file = _env_file()
    known = {prefix + field.upper() for field in settings.model_fields}
    problems = list(_misspelt(known, _secrets(settings, prefix), prefix, file))
    try:
        loaded = settings(_env_file=file)
    except ValidationError as error:
        problems += [_explain(details, prefix) for details in error.errors()]
    if problems:
        _refuse(problems)
    return loaded


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


def _secrets(settings: type[BaseSettings], prefix: str) -> set[str]:
    """Return the settings whose values must not be shown."""
    fields = settings.model_fields.items()
    return {prefix + name.upper() for name, field in fields if "SecretStr" in str(field.annotation)}


def _misspelt(known: set[str], secrets: set[str], prefix: str, file: Path | None) -> Iterator[str]:
    written = dotenv_values(file) if file is not None and file.is_file() else {}
    for name in sorted({*os.environ, *written} - known):
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=_LIKE)
        is_ours = name.startswith(prefix) and name not in _NOT_SETTINGS and not name.startswith(_OF_TESTS)
        if nearest and is_ours:
            value = os.environ.get(name, written.get(name))
            shown = HIDDEN if nearest[0] in secrets else _without_password(repr(value))
            yield f"expected {name} to be a known setting, got: {name}={shown}; did you mean {nearest[0]}?"


def _explain(details: Any, prefix: str) -> str:
    refusal = details.get("ctx", {}).get("error")
    name = prefix + "_".join(str(part) for part in details["loc"]).upper()
    got: object = details["input"]
    rule, way_out = details["msg"], "see the setting's docstring"
    if isinstance(refusal, Refusal):
        rule, way_out, name = refusal.rule, refusal.way_out, refusal.name or name
        got = got if refusal.got is None else refusal.got
    shown = got if isinstance(got, Shown) else _without_password(repr(got))
    return f"expected {name} to be {rule}, got: {shown}; {way_out}"


def _without_password(url: str) -> str:
    """Return the text with the password of every URL in it replaced by `***`."""
    return re.sub(r"(://[^:/@;\s]*):[^@;\s]*@", r"\1:***@", url)
