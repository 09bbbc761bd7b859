"""What the crash-point kit says about the end of a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq import Actor, Message

from middleware import InlineBroker, Queue, current_key
from middleware.effects.keyed import KeyedActor
from middleware.testing.findings import Ended, judge
from middleware.testing.life import Life
from middleware.transport.delivery import Delivery
from middleware.transport.evidence import Evidence
from middleware.transport.memory import Memory, MemoryLink
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead, Outcome, Retry, Snoozed

UNKNOWN = Dead("unknown_outcome", None)
REJECTED = Dead("rejected", ValueError("no credit"))


def careful(one: str) -> str:
    """An external actor that asks for its key."""
    return current_key()


def declared(**options: Any) -> Actor[..., Any]:
    """Return an actor with a key, or without if its options say so."""
    broker = InlineBroker(queues=[Queue(name="jobs")], middleware=[])
    broker.actor_options |= {"idempotency_key", "effect", "reconcile"}
    actor: Actor[..., Any] = dramatiq.actor(broker=broker, queue_name="jobs", **options)(careful)
    return actor


DATABASE = declared(idempotency_key="a:{one}")
EXTERNAL = declared(idempotency_key="a:{one}", effect="external")
ASKING = declared(idempotency_key="a:{one}", effect="external", reconcile=careful)


def life(outcome: Outcome | None, *, is_acknowledged: bool = True, is_dead: bool = False) -> Life:
    """Return a delivery's life at its end."""
    message: Message[Any] = Message("jobs", "careful", ("a",), {}, {})
    delivery = Delivery(message, link=MemoryLink(Memory(), "jobs"), tag=1, body=b"", evidence=Evidence())
    found = Life(delivery, 0, lambda life, point: None)
    found.outcome, found.is_acknowledged, found.is_dead = outcome, is_acknowledged, is_dead
    return found


def said(actor: Actor[..., Any], *lives: Life, effects: int = 1, has_asked: bool = True, **ended: Any) -> str:
    """Return all that is wrong."""
    run = Ended(list(lives), effects, ended.get("is_settled", True), has_asked, ended.get("problem", ""))
    return "; ".join(judge(run, KeyedActor(actor), actor))


CRASHED = life(None, is_acknowledged=False, is_dead=True)
AGAIN = life(Snoozed(timedelta(seconds=1)))


@pytest.mark.parametrize(
    "lives",
    [
        [life(COMPLETED)],
        [life(COMPLETED), life(DUPLICATE)],
        [CRASHED, life(DUPLICATE)],
        [CRASHED, AGAIN, life(Retry("transient", ConnectionError(), timedelta(0))), life(COMPLETED)],
        [life(COMPLETED, is_acknowledged=False), life(COMPLETED)],
    ],
)
def test_one_effect_is_right(lives: list[Life]) -> None:
    """However many deliveries it took, of which one that was acknowledged completed at most."""
    assert said(DATABASE, *lives) == ""


@pytest.mark.parametrize("effects", [0, 2])
def test_none_and_two_are_wrong(effects: int) -> None:
    """The report gives the number and the deliveries."""
    report = said(DATABASE, CRASHED, life(DUPLICATE), effects=effects)
    assert report == f"effect took place {effects} times; deliveries: crashed, duplicate"


def test_two_completions_are_wrong() -> None:
    """Of an actor with a key: the second did not see the first's."""
    assert said(DATABASE, life(COMPLETED), life(COMPLETED)).startswith(
        "2 deliveries completed, and one at most may"
    )


def test_a_dead_letter_is_wrong() -> None:
    """Even if the effect is there."""
    assert said(DATABASE, CRASHED, life(REJECTED)).startswith("the job became a dead letter")


def test_what_has_not_ended_is_wrong() -> None:
    """And nothing else is said about it."""
    assert said(DATABASE, AGAIN, is_settled=False, effects=0) == (
        "the job has not ended in time; deliveries: snoozed"
    )
    assert said(DATABASE, problem="never came") == "never came"


@pytest.mark.parametrize(("effects", "is_right"), [(0, True), (1, True), (2, False)])
def test_an_unknown_outcome_has_one_effect_at_most(effects: int, is_right: bool) -> None:
    """Of an external actor that came to its call, and has nobody to ask."""
    assert (said(EXTERNAL, CRASHED, life(UNKNOWN), effects=effects) == "") is is_right


def test_an_unknown_outcome_that_need_not_be() -> None:
    """Before its call it did nothing; a provider can be asked; in the database all is known."""
    for report in (
        said(EXTERNAL, CRASHED, life(UNKNOWN), has_asked=False),
        said(ASKING, CRASHED, life(UNKNOWN)),
        said(DATABASE, CRASHED, life(UNKNOWN)),
    ):
        assert report.startswith("the job became a dead letter")
