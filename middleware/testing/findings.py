"""Was the effect there once, and did every delivery end as it must?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dramatiq import Actor

from ..effects.asking import asks_for_key
from ..effects.keyed import EXTERNAL, KeyedActor
from ..failures.kinds import Kind
from ..transport.outcome import Completed, Dead
from ..transport.wrapping import function_of
from .life import Life, Point


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        lives: the deliveries.
        effects: how often the effect took place.
        is_settled: whether all deliveries ended in time.
        has_asked: whether an attempt at an external effect came to its call.
        problem: what kept the scenario from taking place; empty for nothing.
    """

    lives: list[Life]
    effects: int
    is_settled: bool
    has_asked: bool
    problem: str

    @property
    def points(self) -> list[Point]:
        """What the first delivery reached."""
        return self.lives[0].points if self.lives else []


def judge(ended: Ended, keyed: KeyedActor | None, actor: Actor[..., Any]) -> Iterator[str]:
    """Yield what is wrong with the end of a run."""
    story = _story(ended.lives)
    if ended.problem:
        yield ended.problem
        return
    if not ended.is_settled:
        yield f"the job has not ended in time; {story}"
        return
    letters = [life for life in ended.lives if life.is_acknowledged and isinstance(life.outcome, Dead)]
    if _may_be_unknown(ended, keyed, actor) and all(_is_unknown(life) for life in letters) and letters:
        if ended.effects > 1:
            yield f"effect took place {ended.effects} times; {story}"
        return
    if letters:
        yield f"the job became a dead letter; {story}"
    if ended.effects != 1:
        yield f"effect took place {ended.effects} times; {story}"
    completed = [life for life in ended.lives if life.is_acknowledged and isinstance(life.outcome, Completed)]
    if keyed is not None and len(completed) > 1:
        yield f"{len(completed)} deliveries completed, and one at most may; {story}"


def _may_be_unknown(ended: Ended, keyed: KeyedActor | None, actor: Actor[..., Any]) -> bool:
    """Whether nobody can know if it took place: the call may have begun, and there is nobody to ask."""
    if keyed is None or keyed.effect != EXTERNAL or actor.options.get("reconcile") is not None:
        return False
    return ended.has_asked or not asks_for_key(function_of(actor))


def _is_unknown(life: Life) -> bool:
    return isinstance(life.outcome, Dead) and life.outcome.kind == Kind.UNKNOWN_OUTCOME


def _story(lives: list[Life]) -> str:
    """Return how the deliveries ended, in one line."""
    return "deliveries: " + (", ".join(_end(life) for life in lives) or "none")


def _end(life: Life) -> str:
    if life.is_dead:
        return "crashed"
    if life.outcome is None:
        return "running"
    text = life.outcome.name
    if life.is_lost:
        text += " (not acknowledged)"
    return text if life.error is None else f"{text} ({type(life.error).__name__}: {life.error})"[:300]
