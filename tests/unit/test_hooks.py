from __future__ import annotations

from typing import Any

from dramatiq import Broker
from dramatiq.middleware import Middleware

from middleware.transport.hooks import Hooks


class First(Middleware):
    def before_ack(self, broker: Broker, message: Any) -> None: ...

    def check_message(self, broker: Broker, message: Any) -> None: ...


class Second(First):
    def after_ack(self, broker: Broker, message: Any) -> None: ...


class Nothing(Middleware):
    pass


def test_only_overridden_hooks_are_called_in_the_lists_order() -> None:
    """A hook that a middleware does not define, or only inherits from Dramatiq, costs nothing."""
    first, second, nothing = First(), Second(), Nothing()
    hooks = Hooks([first, nothing, second])
    assert hooks.named("before_ack") == [(first, first.before_ack), (second, second.before_ack)]
    assert hooks.named("after_ack") == [(second, second.after_ack)]
    assert hooks.named("before_nack") == []


def test_hooks_that_are_the_kits_own_are_found() -> None:
    """A hook that Dramatiq's base class does not have counts as well."""
    first = First()
    assert Hooks([Nothing(), first]).named("check_message") == [(first, first.check_message)]


def test_a_middleware_that_comes_later_is_found_after_forgetting() -> None:
    """What was found is remembered until the list changes."""
    middleware: list[Middleware] = [First()]
    hooks = Hooks(middleware)
    assert len(hooks.named("before_ack")) == 1
    middleware.append(Second())
    assert len(hooks.named("before_ack")) == 1
    hooks.forget()
    assert len(hooks.named("before_ack")) == 2


class Assigned(Middleware):
    def __init__(self) -> None:
        self.before_ack = lambda broker, message: None  # type: ignore[method-assign]  # as a test might


def test_a_hook_assigned_to_an_instance_is_found() -> None:
    """A hook need not be defined in a class."""
    assert len(Hooks([Assigned()]).named("before_ack")) == 1
