"""JOB108, JOB202: does an actor write where a second run may do harm?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..actors import Actor
from ..finding import Finding
from ..inspection import Inspection, about
from ..writes import Effect, network_in, reached, writes_in

_FIX: Final = (
    'declare idempotency_key="name:{parameter}" and write with current_session(), or say why a second run '
    'does no harm: idempotent="upsert by primary key"'
)


def check_keyless(inspection: Inspection) -> Iterator[Finding]:
    """Yield actors that write with neither a key nor a reason, and hints to those that may."""
    for actor in inspection.actors:
        if actor.option("idempotency_key") is None and actor.option("idempotent") is None:
            yield from _check_keyless(inspection, actor)
        elif actor.has_session:
            yield from _check_network(inspection, actor)


def _check_keyless(inspection: Inspection, actor: Actor) -> Iterator[Finding]:
    write = next(writes_in(inspection, actor.function, actor.home), None)
    if write is not None:
        yield about(
            actor,
            "JOB108",
            f"it writes ({_told(write)}) and has neither idempotency_key= nor idempotent=: a job that comes "
            "twice writes twice",
            _FIX,
        )
        return
    effect = (
        reached(inspection, actor.function, actor.home, network=False)
        or next(network_in(inspection, actor.function, actor.home), None)
        or reached(inspection, actor.function, actor.home, network=True)
    )
    if effect is not None:
        yield about(
            actor,
            "JOB202",
            f"it may write or be seen outside ({_told(effect)}) and has neither idempotency_key= nor "
            "idempotent=",
            _FIX,
        )


def _check_network(inspection: Inspection, actor: Actor) -> Iterator[Finding]:
    effect = next(network_in(inspection, actor.function, actor.home), None) or reached(
        inspection, actor.function, actor.home, network=True
    )
    if effect is not None:
        yield about(
            actor,
            "JOB202",
            f"it may reach the network ({_told(effect)}) inside the ledger's transaction, which waits for "
            "the answer and cannot take back what was sent",
            'declare effect="external" for what is done elsewhere, effect="late" for what is computed before '
            "it is written, or leave the call to a job of its own",
        )


def _told(effect: Effect) -> str:
    line = getattr(effect.node, "lineno", 0)
    through = f", through {' → '.join(effect.via)}" if effect.via else ""
    return f"{effect.what} in line {line}{through}"
