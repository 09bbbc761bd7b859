"""What is an actor with an idempotency key, and which row does a job of it leave in the ledger?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dramatiq import Actor

from ..errors import DeclarationError
from ..transport.wrapping import function_of
from .arguments import Parameters, args_hash
from .entry import Entry
from .following import asks, refusal
from .keys import KeyTemplate

DATABASE: Final = "database"
LATE: Final = "late"
EXTERNAL: Final = "external"
EFFECTS: Final = {
    DATABASE: "what the actor writes with its session is committed together with its key",
    LATE: "the same at the end of a long computation, for what it writes in `with effect():`",
    EXTERNAL: "a call that no transaction takes back, noted before and confirmed after",
}
"""Values of the option `effect`, and what each means."""


class KeyedActor:
    """An actor with an idempotency key.

    Parameters:
        actor: its options are checked.

    Attributes:
        name: the actor's name.
        queue: its queue's name.
        effect: one of `EFFECTS`.
        template: of its keys.
        is_followed: another job follows each of its jobs.

    Raises:
        DeclarationError: an option is wrong; names actor, option, rule and way out.
    """

    def __init__(self, actor: Actor[..., Any]) -> None:
        self.name = actor.actor_name
        self.queue = actor.queue_name
        self.effect: str = actor.options.get("effect") or DATABASE
        self._parameters = Parameters(function_of(actor))
        try:
            self.template = KeyTemplate(actor.options["idempotency_key"], self._parameters.names)
        except ValueError as error:
            raise DeclarationError(f"actor {self.name!r}: {error}") from None
        self.is_followed = asks(actor.options)
        reason = self.refusal(actor.options)
        if reason:
            raise DeclarationError(reason)

    def refusal(self, options: Mapping[str, Any]) -> str:
        """Return why the actor, or a message for it, cannot have its options; empty if it can."""
        return "" if self.effect == DATABASE else refusal(self.name, self.effect, options)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check that a job's arguments fit and make a key.

        Raises:
            ValueError: names actor, argument, rule and way out.
        """
        try:
            self.template.render(self._parameters.bind(args, kwargs))
        except ValueError as error:
            raise ValueError(f"actor {self.name!r}: {error}") from None

    def entry(self, args: Sequence[Any], kwargs: Mapping[str, Any], message_id: str) -> Entry:
        """Return a job's row.

        Raises:
            ValueError: as `check`, or an argument is not plain JSON.
        """
        try:
            arguments = self._parameters.bind(args, kwargs)
            return Entry(self.template.render(arguments), args_hash(arguments), self.name, message_id)
        except ValueError as error:
            raise ValueError(f"actor {self.name!r}: {error}") from None


def is_keyed(actor: Actor[..., Any]) -> bool:
    """Whether an actor has an idempotency key.

    Raises:
        DeclarationError: it has an `effect` that does not exist, or one without a key.
    """
    key, effect = actor.options.get("idempotency_key"), actor.options.get("effect")
    if effect is not None and not (isinstance(effect, str) and effect in EFFECTS):
        known = " or ".join(f"{name!r} ({meaning})" for name, meaning in EFFECTS.items())
        raise DeclarationError(
            f"actor {actor.actor_name!r}: expected effect to be {known}, got: {effect!r}; write one of them, "
            "or leave it out"
        )
    if effect is not None and key is None:
        raise DeclarationError(
            f"actor {actor.actor_name!r}: expected effect to come with an idempotency_key, got: "
            f"effect={effect!r} alone; add"
            '  idempotency_key="name:{parameter}", or leave effect out'
        )
    for name in ("reconcile", "on_unknown"):
        if actor.options.get(name) is not None and effect != EXTERNAL:
            raise DeclarationError(
                f"actor {actor.actor_name!r}: expected {name} to come with effect='external', got: "
                f"effect={effect!r}; leave it out: what is in the database is never unknown"
            )
    return key is not None
