"""Which idempotency key does a job have? The actor's template with the job's arguments filled in.

`%` and `:` inside a value are percent-encoded: `("a:b", "c")` and `("a", "b:c")` stay two keys.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from string import Formatter
from typing import Any, Final

LONGEST_KEY: Final = 512
"""Characters. PostgreSQL's index takes no entry above 2,700 bytes, and each row carries its key."""

_EXAMPLE: Final = '"credit:{task_id}:{message_id}"'


class KeyTemplate:
    """An actor's `idempotency_key`.

    Parameters:
        text: for example `"credit:{task_id}:{message_id}"`: plain names of the actor's parameters, in
            braces, and what stands between them.
        parameters: names that may be used; `*args` and `**kwargs` are none.

    Attributes:
        shape: what stands between the fields: two templates of one shape render the same keys.

    Raises:
        ValueError: reads "expected idempotency_key to …, got: …; <way out>".
    """

    def __init__(self, text: str, parameters: Collection[str]) -> None:
        if not isinstance(text, str):
            raise _refused("be a text", text, f"write it like {_EXAMPLE}")
        self._parts = _parse(text, parameters)
        self.text = text
        self.shape = tuple(literal for literal, _ in self._parts)

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the key of a job.

        Parameters:
            values: the job's arguments by parameter, defaults included.

        Raises:
            ValueError: a value cannot be part of a key, or the key is too long; names the parameter.
        """
        pieces = []
        for literal, field in self._parts:
            pieces.append(literal)
            if field is not None:
                pieces.append(_encode(field, values[field]))
        key = "".join(pieces)
        if len(key) > LONGEST_KEY:
            raise ValueError(
                f"expected its idempotency key to be at most {LONGEST_KEY} characters, got: {len(key)}; "
                "use short ids in the key, or a digest of a long value"
            )
        return key


def _encode(field: str, value: object) -> str:
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"  # as in JSON, not as in Python
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str) and value and _is_storable(value):
        if "%" in value or ":" in value:
            return value.replace("%", "%25").replace(":", "%3A")
        return value
    raise ValueError(
        f"expected {field}, a part of the idempotency key, to be an int or a text that is not empty (no NUL, "
        f"no lone surrogate), got: {value!r}; pass the id of what the job is about, or leave {field} out"
    )


def _is_storable(value: str) -> bool:
    """Whether PostgreSQL takes the text: no NUL, no half of a surrogate pair."""
    if "\0" in value:
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _parse(text: str, parameters: Collection[str]) -> list[tuple[str, str | None]]:
    """Return the literals, each with the field that follows it; the last one has none."""
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise _refused("be a template", text, f"write it like {_EXAMPLE} ({error})") from None
    parts: list[tuple[str, str | None]] = []
    pending = ""
    for literal, field, spec, conversion in parsed:
        pending += literal  # an escaped brace ends a literal without a field
        if field is None:
            continue
        _check_field(text, field, spec, conversion, parameters)
        if parts and not pending:
            raise _refused("have a text between two fields", text, "separate the fields with ':'")
        parts.append((pending, field))
        pending = ""
    if not parts:
        raise _refused(
            "have at least one field", text, f"name the parameters that tell jobs apart, like {_EXAMPLE}"
        )
    if not _is_storable(text):
        raise _refused("be free of NUL and lone surrogates", text, "remove them")
    return [*parts, (pending, None)]


def _check_field(
    text: str, field: str, spec: str | None, conversion: str | None, parameters: Collection[str]
) -> None:
    if field in parameters and not spec and not conversion:
        return
    written = field + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
    raise _refused(
        f"have plain parameter names of the actor in braces ({', '.join(parameters) or 'it has none'})",
        text,
        f"replace {{{written}}} by a parameter, without attribute, index, conversion or format",
    )


def _refused(rule: str, got: object, way_out: str) -> ValueError:
    return ValueError(f"expected idempotency_key to {rule}, got: {got!r}; {way_out}")
