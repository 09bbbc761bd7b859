"""When does the maintenance prune the ledger? Once a day, whichever of its processes comes first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias

from ..logs import get_logger
from ..store import Store
from .pruning import Pruner, is_due

log = get_logger(__name__)

Duty: TypeAlias = Callable[[threading.Event], None]
"""Something that the maintenance does beside the relay, until the event is set."""

_LOOK_EVERY: Final = timedelta(minutes=1)


def pruning(store: Store, pruner: Pruner, every: timedelta) -> Duty:
    """Return the duty to prune.

    Parameters:
        store: the database.
        pruner: does it.
        every: how long after the last run, whoever did it.
    """

    def run(stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                _prune_if_due(store, pruner, every, stop)
            except Exception as error:
                log.warning("prune.failed", reason=repr(error)[:500])
            stop.wait(_LOOK_EVERY.total_seconds())

    return run


def _prune_if_due(store: Store, pruner: Pruner, every: timedelta, stop: threading.Event) -> None:
    if not is_due(store, every):
        return
    pruned = pruner.run(stop)
    log.info(
        "prune.ended",
        before=pruned.before.isoformat(timespec="seconds"),
        keys=pruned.keys,
        attempts=pruned.attempts,
        is_complete=pruned.is_complete,
    )
