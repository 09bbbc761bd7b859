"""What does a job call its actor with? Arguments by parameter, and a hash that tells two jobs apart."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

HASH_BYTES: Final = 16

_PLAIN: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD
_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_canonical: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Parameters:
    """The parameters of an actor's function.

    Attributes:
        names: those that stand for one argument each, `*args` and `**kwargs` left out.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        self.names = tuple(each.name for each in parameters if each.kind not in _VARIABLE)
        self._are_plain = all(each.kind is _PLAIN for each in parameters)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter, defaults included.

        Raises:
            ValueError: they do not fit the parameters.
        """
        if self._are_plain and not kwargs and len(args) == len(self.names):
            return dict(zip(self.names, args, strict=True))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ValueError(
                f"expected its arguments to fit {self._signature}, got: args={tuple(args)!r:.200} "
                f"kwargs={dict(kwargs)!r:.200} ({error}); send what the actor takes"
            ) from None
        bound.apply_defaults()
        return dict(bound.arguments)


def args_hash(arguments: Mapping[str, Any]) -> bytes:
    """Return 16 bytes that differ if any argument differs.

    Parameters:
        arguments: by parameter; a list and a tuple of the same items are the same, as in JSON.

    Raises:
        ValueError: an argument is not plain JSON.
    """
    try:
        text = _canonical(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"expected its arguments to be plain JSON, got: {error}; pass ids and plain values"
        ) from None
    return blake2b(text.encode(), digest_size=HASH_BYTES).digest()
