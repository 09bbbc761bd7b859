"""Is it known of an actor whether it asks for its key before it calls, and never believed without reason?"""

from __future__ import annotations

from typing import Any

import middleware
from middleware import current_key, effects
from middleware.effects import current_key_async
from middleware.effects.asking import asks_for_key


class Keyring:
    """Has something of the same name."""

    current_key = "the key that a client signs with"


KEYRING = Keyring()


def of_the_same_name(one: str) -> str:
    """Is no function of the kit's."""
    return one


def test_the_actors_own_code_is_looked_at() -> None:
    """An actor asks for its key if its code, or a function in it, names `current_key` or its async form."""

    def plain() -> None:
        print(current_key())  # noqa: T201  # never called

    def in_module() -> None:
        middleware.current_key()

    def in_a_module_of_a_module() -> None:
        middleware.effects.current_key()

    def in_a_room() -> None:
        effects.current_key()

    def imported() -> Any:
        from middleware import current_async_session, current_key

        return current_async_session(), current_key()

    def nested() -> Any:
        return [lambda: current_key()]

    async def coroutine() -> None:
        await current_key_async()

    asking = (plain, in_module, in_a_module_of_a_module, in_a_room, imported, nested, coroutine)
    assert [asks_for_key(each) for each in asking] == [True] * len(asking)


def test_something_else_of_that_name_is_not_the_key() -> None:
    """Nothing is concluded from an attribute, an argument or a function that only shares the name."""

    def elsewhere() -> None:
        of_the_same_name("current_key")

    def attribute() -> str:
        return KEYRING.current_key

    def beside_the_import() -> Any:
        return KEYRING.current_key, middleware.effect()

    def argument(current_key: Any) -> Any:
        return current_key()

    others = (elsewhere, attribute, beside_the_import, argument)
    assert [asks_for_key(each) for each in others] == [False] * len(others)
    assert not asks_for_key(print)
    assert not asks_for_key(KEYRING)  # type: ignore[arg-type]  # whatever an actor wraps


def test_a_name_that_is_the_kits_elsewhere_in_its_module_is_not() -> None:
    """An actor whose module has its own `current_key` does not ask, although another's does."""
    names: dict[str, Any] = {"current_key": of_the_same_name}
    exec("def act(one):\n    return current_key(one)\n", names)  # a module of its own
    assert not asks_for_key(names["act"])
    names["current_key"] = current_key
    assert asks_for_key(names["act"])
