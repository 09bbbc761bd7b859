"""`jobsctl seed`: is there something to try the application with?"""

from __future__ import annotations

import inspect

import typer

from .application import load_application
from .problems import BadInput


def seed(context: typer.Context) -> None:
    """Write the application's sample data; `jobsctl seed --help` lists its options."""
    application, _ = load_application()
    command = typer.Typer(add_completion=False)
    command.command(help=_summary(application.seed))(application.seed)
    try:
        text = command(args=context.args, prog_name=context.command_path, standalone_mode=False)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if isinstance(text, str):  # a number after --help
        typer.echo(text)


def _summary(seed: object) -> str:
    """Return the first paragraph of a docstring: what follows it is for programmers."""
    return (inspect.getdoc(seed) or "Write sample data.").split("\n\n")[0]
