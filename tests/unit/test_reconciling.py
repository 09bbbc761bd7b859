"""Are the options of external effects checked where they are written?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dramatiq
import pytest

from middleware import DeclarationError, Failures, InlineBroker, Queue, TimeLimits
from middleware.effects import Ledger
from middleware.store import Store


def ask(one: str) -> str:
    """A `def`."""
    return "done"


async def ask_async(one: str) -> str:
    """An `async def`."""
    return "done"


@pytest.fixture
def declare(tmp_path: Any) -> Callable[..., Any]:
    """Declare an actor, a `def` unless `is_async`."""
    store = Store(f"sqlite:///{tmp_path}/none.sqlite3")
    broker = InlineBroker(queues=[Queue(name="jobs")], middleware=[TimeLimits(), Ledger(store), Failures()])

    def act(one: str) -> None: ...

    async def act_async(one: str) -> None: ...

    def declare(*, is_async: bool = False, **options: Any) -> Any:
        function = act_async if is_async else act
        return dramatiq.actor(broker=broker, queue_name="jobs", actor_name="act", **options)(function)

    return declare


EXTERNAL = {"idempotency_key": "k:{one}", "effect": "external"}


WRONG = [(False, ask_async), (True, ask), (False, "ask"), (True, True)]


@pytest.mark.parametrize(("is_async", "reconcile"), WRONG)
def test_reconcile_is_of_the_actors_kind(declare: Callable[..., Any], is_async: bool, reconcile: Any) -> None:
    """What is no function, or a coroutine for a `def` actor, raises at declaration."""
    with pytest.raises(
        DeclarationError, match="actor 'act': expected reconcile to be a function with the actor's"
    ):
        declare(is_async=is_async, reconcile=reconcile, **EXTERNAL)
    declare(reconcile=ask, **EXTERNAL)


@pytest.mark.parametrize("value", ["ask", "", True])
def test_on_unknown_is_retry_or_nothing(declare: Callable[..., Any], value: Any) -> None:
    """Another value raises, and the error says what leaving it out means."""
    with pytest.raises(DeclarationError, match=r"expected on_unknown to be 'retry', got: .*; leave it out"):
        declare(on_unknown=value, **EXTERNAL)
    declare(on_unknown="retry", **EXTERNAL)


def test_asking_and_not_asking(declare: Callable[..., Any]) -> None:
    """Both options together raise."""
    with pytest.raises(DeclarationError, match="expected reconcile or on_unknown, got: both"):
        declare(reconcile=ask, on_unknown="retry", **EXTERNAL)


@pytest.mark.parametrize(
    "option", [{"reconcile": ask}, {"on_unknown": "retry"}], ids=["reconcile", "on_unknown"]
)
@pytest.mark.parametrize("others", [{}, {"idempotency_key": "k:{one}"}], ids=str)
def test_they_belong_to_external_effects(
    declare: Callable[..., Any], option: dict[str, Any], others: dict[str, Any]
) -> None:
    """What is in the database is never unknown: with another effect they raise."""
    with pytest.raises(DeclarationError, match="to come with effect='external'"):
        declare(**option, **others)
