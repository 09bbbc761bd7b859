"""What does a job look like to a sender that does not know the actor's code?"""

from __future__ import annotations

from typing import Any

import dramatiq

from .brokers import QUEUE


def message(
    text: str = "x", *, actor: str = "far_away", queue: str = QUEUE, **options: Any
) -> dramatiq.Message[Any]:
    """Return a job for an actor that is declared elsewhere, or nowhere.

    Parameters:
        text: its only argument.
        actor: the actor's name.
        queue: the queue's name.
        options: the message's options.
    """
    return dramatiq.Message(queue_name=queue, actor_name=actor, args=(text,), kwargs={}, options=options)
