"""`jobsctl send`: give an actor a job, by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

import typer

from ..durations import parse_duration
from ..observe import Follower
from ..transport.broker import JobBroker
from ..transport.inline import InlineBroker
from .actors import find_actor
from .application import load_application
from .arguments import read_arguments
from .follow import follow
from .problems import BadInput

_MILLISECOND: Final = timedelta(milliseconds=1)


def send(
    actor_name: Annotated[str, typer.Argument(metavar="ACTOR", help="As `jobsctl actors` lists them.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="JSON where it parses, else text.")
    ] = None,
    kwargs: Annotated[str | None, typer.Option(help="Keyword arguments, a JSON object.")] = None,
    delay: Annotated[str | None, typer.Option(help="Run it so much later, such as 5s or 1h30m.")] = None,
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Send so many copies.")] = 1,
) -> None:
    """Send a job and print its message id; with the inline broker, run it and say how it ended."""
    _, broker = load_application()
    actor = find_actor(broker.actors, actor_name)
    args, keywords = read_arguments(actor, words or (), kwargs)
    delay_ms = _read_delay(delay)
    messages = [actor.message(*args, **keywords) for _ in range(count)]
    follower = Follower(broker) if isinstance(broker, InlineBroker) else None
    for message in broker.enqueue_many(messages, delay_ms=delay_ms):
        typer.echo(message.message_id)
    if follower is None:
        return
    alive = follow(follower, messages, report=typer.echo)
    tell_what_is_left(broker)
    if not alive:
        raise typer.Exit(1)


def tell_what_is_left(broker: JobBroker) -> None:
    """Say what the end of this process does to the jobs that the followed ones sent."""
    counts = [broker.queue_counts(name) for name in broker.specs]
    left = sum((each.waiting or 0) + (each.active or 0) + (each.delayed or 0) for each in counts)
    if left:
        typer.echo(
            f"jobsctl: jobs that these sent and that have not ended: {left}; they go with this process",
            err=True,
        )


def _read_delay(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return round(parse_duration(text) / _MILLISECOND)
    except ValueError as error:
        raise BadInput(str(error).replace("a duration", "--delay")) from None
