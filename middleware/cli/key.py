"""`jobsctl key show`: was an idempotency key spent, which attempts were made, and what waits to be sent?"""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Annotated, Any

import typer

from ..effects.history import Commit, History, Sent, Tried, history_of
from ..effects.ledger import Ledger
from .application import load_application
from .problems import BadInput

key = typer.Typer(help="Look into idempotency keys.", no_args_is_help=True)


@key.callback()
def _key() -> None:
    """Look into idempotency keys."""


@key.command()
def show(
    text: Annotated[
        str, typer.Argument(metavar="KEY", help="As its actor's template renders it: credit:t1:m1.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="An object; null where there is nothing.")] = False,
) -> None:
    """Show the commit that spent a key, the attempts at an external effect, and what waits in the outbox."""
    if not text.isascii() and text != text.encode(errors="replace").decode():
        raise BadInput(f"expected KEY to be text in UTF-8, got: {text!r}; copy it from a log")
    application, broker = load_application()
    history = history_of(application.store, text, Ledger.of(broker).actors)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(history), indent=2, default=_as_text))
        return
    typer.echo(f"key       {history.key}")
    typer.echo(f"spent     {_commit(history.commit)}")
    for attempt in history.attempts:
        typer.echo(f"\nattempt {attempt.number} {attempt.state}")
        for name, value in _facts(attempt):
            typer.echo(f"  {name:<8}{value}")
    for send in history.sends:
        typer.echo(f"\nsent      {_sent(send)}")
    advice = _advice(history)
    if advice:
        typer.echo(f"\n{advice}")


def _commit(commit: Commit | None) -> str:
    if commit is None:
        return "no"
    return f"{_as_text(commit.at)} by {commit.actor}, message {commit.message_id}"


def _sent(send: Sent) -> str:
    why = f"; {send.problem}" if send.problem else ""
    return (
        f"{_as_text(send.enqueued_at)} to {send.actor}, message {send.message_id}, waits in the outbox, due "
        f"{_as_text(send.due_at)}{why}"
    )


def _facts(attempt: Tried) -> list[tuple[str, str]]:
    """Return what there is to say about an attempt, in the order in which it happened."""
    facts = [
        ("began", f"{_as_text(attempt.began_at)} by {attempt.actor}, message {attempt.message_id}"),
        ("holder", attempt.holder),
        ("asked", "never" if attempt.asked_at is None else _as_text(attempt.asked_at)),
    ]
    if attempt.lease_until is not None:
        over = "" if attempt.is_alive else ", which is over"
        facts.append(("lease", f"until {_as_text(attempt.lease_until)}{over}"))
    if attempt.ended_at is not None:
        facts.append(("ended", _as_text(attempt.ended_at)))
    if attempt.reason:
        facts.append(("because", attempt.reason))
    if attempt.result is not None:
        facts.append(("result", json.dumps(attempt.result, ensure_ascii=False)))
    return facts


def _advice(history: History) -> str:
    """Return what a person has to know who came to ask."""
    last = history.attempts[-1] if history.attempts else None
    if history.commit is not None:
        several = sum(each.state == "confirmed" for each in history.attempts) > 1
        return "Confirmed more than once: look for a second effect at the provider." if several else ""
    if last is None and not history.sends:
        known = "Nobody has spent this key, and no external effect was attempted with it."
        return known + _forgotten(history)
    if last is None:
        return ""
    if last.state == "unknown" or (last.state == "held" and not last.is_alive):
        return "The effect may have taken place or not: look this key up at the provider."
    return ""


def _forgotten(history: History) -> str:
    if history.forgotten_before is None:
        return ""
    before = _as_text(history.forgotten_before)
    return f"\nThat is not known of jobs from before {before}, whose keys are forgotten."


def _as_text(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.isoformat(sep=" ", timespec="seconds")
