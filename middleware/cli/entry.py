"""The commands, in the order in which somebody new needs them, and what becomes of their errors."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import typer

from .actors import actors
from .application import close_application
from .check import check
from .key import key
from .maintenance import maintenance
from .migrate import migrate
from .problems import EXPECTED, explain
from .prune import prune
from .queues import queues
from .seed import seed
from .send import send

app = typer.Typer(
    name="jobsctl",
    help="Operate the application that JOBS_APP names (default: jobs).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_ANY_WORDS = {"ignore_unknown_options": True}  # so that a negative number is an argument

app.command()(migrate)
app.command(context_settings={"allow_extra_args": True, "help_option_names": [], **_ANY_WORDS})(seed)
app.command()(actors)
app.command(context_settings=_ANY_WORDS)(send)
app.command()(queues)
app.add_typer(key, name="key")
app.command()(check)
app.command()(maintenance)
app.command()(prune)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `jobsctl` and exit: 0 done, 1 failed, 2 wrong input, 130 interrupted.

    Parameters:
        arguments: what stands after the program's name; None means the process's own.
    """
    # What a command has to say it prints; a job's log lines belong to workers.
    logging.basicConfig(level=logging.CRITICAL, format="jobsctl: %(message)s")
    try:
        app(args=arguments, prog_name="jobsctl")
    except EXPECTED as error:
        text, code = explain(error)
        typer.echo(f"jobsctl: {text}", err=True)
        raise SystemExit(code) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        close_application()
