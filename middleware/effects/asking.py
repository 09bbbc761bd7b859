"""Does an actor ask for its key before it calls? Then an attempt that did not come to ask has called nobody.

Its own code is read, and only the kit's `current_key` counts: something else of that name, such as the key
that a client signs with, says nothing, and an attempt taken for harmless would be repeated.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any, Final

from .attempt import current_key, current_key_async

_ASKING: Final = (current_key, current_key_async)
_GLOBALS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"})


def asks_for_key(function: Callable[..., Any]) -> bool:
    """Whether an actor's own code, or a function in it, names `current_key` or `current_key_async`."""
    code = getattr(function, "__code__", None)
    names = getattr(function, "__globals__", {})
    return any(value in _ASKING for value in _values(code, names)) if isinstance(code, CodeType) else False


def _values(code: CodeType, names: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the functions that code names, as far as that is known without running it."""
    value: Any = None
    for step in dis.get_instructions(code):
        if step.opname in _GLOBALS:
            value = names.get(step.argval)
        elif step.opname == "IMPORT_NAME":
            value = sys.modules.get(step.argval)
        elif step.opname in _ATTRIBUTES and isinstance(value, ModuleType):
            found = vars(value).get(step.argval)
            if callable(found):
                yield found
            value = value if step.opname == "IMPORT_FROM" else found
            continue
        elif not step.opname.startswith("STORE_"):  # between two names of one import
            value = None
        if callable(value):
            yield value
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _values(constant, names)
