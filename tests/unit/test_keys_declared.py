"""A wrong option of a keyed actor, or a wrong message for it, is refused where it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dramatiq
import pytest
from dramatiq.middleware import Callbacks, Pipelines

from middleware import DeclarationError, Failures, InlineBroker, NotEnqueued, PayloadError, Queue, TimeLimits
from middleware.effects import Ledger
from middleware.store import Store


@pytest.fixture
def broker(tmp_path: Any) -> InlineBroker:
    """A broker with a ledger whose database is never touched."""
    store = Store(f"sqlite:///{tmp_path}/none.sqlite3")
    return InlineBroker(
        queues=[Queue(name="jobs")],
        middleware=[TimeLimits(), Ledger(store), Callbacks(), Pipelines(), Failures()],
    )


@pytest.fixture(params=["def", "async def"])
def declare(request: pytest.FixtureRequest, broker: InlineBroker) -> Callable[..., Any]:
    """Declare an actor with parameters `one` and `two`."""

    def act(one: str, two: str = "2", *more: str, **rest: str) -> None: ...

    async def act_async(one: str, two: str = "2", *more: str, **rest: str) -> None: ...

    function = act if request.param == "def" else act_async

    def declare(name: str = "act", **options: Any) -> Any:
        return dramatiq.actor(broker=broker, queue_name="jobs", actor_name=name, **options)(function)

    return declare


@pytest.mark.parametrize("key", ["no field", "k:{three}", "k:{more}", "k:{rest}", "k:{one.x}", "", 3])
def test_a_key_that_does_not_fit_the_signature(declare: Callable[..., Any], key: Any) -> None:
    """A template that names no parameter raises at declaration and names actor and option."""
    with pytest.raises(DeclarationError, match="actor 'act': expected idempotency_key to"):
        declare(idempotency_key=key)


@pytest.mark.parametrize("effect", ["databse", "", True, ["late"]])
def test_an_effect_that_does_not_exist(declare: Callable[..., Any], effect: Any) -> None:
    """An effect that is not one of those that exist is refused, and those are listed."""
    known = r"'act': expected effect to be 'database' \(.*\) or 'late' \(.*\) or 'external' \(.*\), got: "
    with pytest.raises(DeclarationError, match=known):
        declare(idempotency_key="k:{one}", effect=effect)


@pytest.mark.parametrize("effect", ["database", "late", "external"])
def test_an_effect_without_a_key(declare: Callable[..., Any], effect: str) -> None:
    """effect= makes no sense without idempotency_key=."""
    with pytest.raises(DeclarationError, match="expected effect to come with an idempotency_key"):
        declare(effect=effect)


def test_a_key_and_a_reason_to_need_none(declare: Callable[..., Any]) -> None:
    """idempotent= stands for a key: both together raise."""
    with pytest.raises(DeclarationError, match="expected idempotent to stand for a key, got: both"):
        declare(idempotency_key="k:{one}", idempotent="upsert by primary key")
    declare(idempotent="upsert by primary key")


@pytest.mark.parametrize("effect", ["late", "external"])
@pytest.mark.parametrize("option", ["on_success", "pipe_target"])
def test_options_that_send_another_job(declare: Callable[..., Any], option: str, effect: str) -> None:
    """What follows an effect that ends before its actor returns could be lost: such options raise."""
    declare("other")
    with pytest.raises(DeclarationError, match=f"got: {option}; what follows could be lost"):
        declare(idempotency_key="k:{one}", effect=effect, **{option: "other"})
    declare("followed", idempotency_key="f:{one}", **{option: "other"})
    declare(idempotency_key="k:{one}", effect=effect, on_failure="other", **{option: None})


def test_two_actors_with_one_template(declare: Callable[..., Any]) -> None:
    """Two actors whose keys would be the same raise, whatever the fields are called."""
    declare("first", idempotency_key="k:{one}", effect="database")
    for key in ("k:{one}", "k:{two}"):
        with pytest.raises(DeclarationError, match=r"actor 'second': .*keys are those of actor 'first'"):
            declare("second", idempotency_key=key)
    declare("second", idempotency_key="j:{one}")


def test_a_declaration_that_failed_claims_no_template(declare: Callable[..., Any]) -> None:
    """An actor that another middleware refused does not keep its template from others."""
    with pytest.raises(DeclarationError):
        declare("first", idempotency_key="k:{one}", max_retries="many")
    declare("second", idempotency_key="k:{one}")


@pytest.mark.parametrize("value", [None, "", 1.5, ["a"], {"a": 1}, "x" * 600])
def test_a_value_that_makes_no_key(declare: Callable[..., Any], value: Any) -> None:
    """`send()` raises PayloadError, which names actor and argument and says that nothing was stored."""
    actor = declare(idempotency_key="k:{one}")
    with pytest.raises(PayloadError, match=r"actor 'act': expected (one|its idempotency key)") as caught:
        actor.send(value)
    assert [message.actor_name for message in caught.value.refused] == ["act"]


def test_arguments_that_do_not_fit_the_actor(broker: InlineBroker) -> None:
    """`send()` raises PayloadError for missing or unknown arguments of a keyed actor."""

    def act(one: str) -> None: ...

    actor = dramatiq.actor(broker=broker, queue_name="jobs", idempotency_key="k:{one}")(act)
    for args in ((), ("1", "2")):
        with pytest.raises(PayloadError, match="expected its arguments to fit"):
            actor.send_with_options(args=args)


@pytest.mark.parametrize("effect", ["late", "external"])
def test_a_message_that_asks_for_another_job(declare: Callable[..., Any], effect: str) -> None:
    """`send_with_options()` refuses what the declaration refuses."""
    declare("other")
    actor = declare(idempotency_key="k:{one}", effect=effect)
    with pytest.raises(NotEnqueued, match="got: on_success; "):
        actor.send_with_options(args=("1",), on_success="other")


def test_a_pipeline_from_a_keyed_actor(broker: InlineBroker, declare: Callable[..., Any]) -> None:
    """A pipeline may not go on after an actor whose effect ends before it returns."""
    keyed, other = declare(idempotency_key="k:{one}", effect="late"), declare("other")
    with pytest.raises(NotEnqueued, match="pipe_target"):
        dramatiq.pipeline([keyed.message("1"), other.message()], broker=broker).run()
