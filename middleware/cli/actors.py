"""`jobsctl actors`: which actors are there, and what do they take?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dramatiq import Actor
from rich import box
from rich.console import Console
from rich.table import Table

from .application import APP, NEEDS, load_application
from .arguments import describe_signature
from .problems import BadInput, nearest


def actors() -> None:
    """List the application's actors: queue, parameters, idempotency key."""
    _, broker = load_application()
    table = Table(box=box.SIMPLE)
    for heading in ("actor", "queue", "idempotency key"):
        table.add_column(heading, overflow="fold")  # a key that is cut off is no key
    for _, actor in sorted(broker.actors.items()):
        table.add_row(describe_signature(actor), actor.queue_name, actor.options.get("idempotency_key", "–"))
    Console().print(table)


def find_actor(known: Mapping[str, Actor[..., Any]], name: str) -> Actor[..., Any]:
    """Return the actor of that name.

    Raises:
        BadInput: there is none; the text names the nearest one and lists all.
    """
    if name in known:
        return known[name]
    listed = ", ".join(sorted(known)) or "none"
    raise BadInput(
        f"expected ACTOR to be one of the declared actors ({listed}), got: {name!r}{nearest(name, known)}; "
        f"a file under jobs/ is imported in jobs/__init__.py; for actors of a module of your own set {APP} "
        f"to it, as in `{APP}=my_actors jobsctl send …`; the module {NEEDS}"
    )
