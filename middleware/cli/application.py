"""Which application does the command line work for, and what must that offer?

JOBS_APP names the module, `jobs` if it is not set. Importing it sets Dramatiq's broker to one of the kit's
and declares the actors; the module offers what `Application` lists.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final, Protocol, cast

import dramatiq
from dramatiq import broker as dramatiq_broker

from ..errors import ConfigurationError
from ..store import Store
from ..transport.broker import JobBroker

APP: Final = "JOBS_APP"
DEFAULT_APP: Final = "jobs"
NEEDS: Final = "begins with `from jobs import seed, store`"
"""What a module beside `jobs` does to be an application, in words."""


_stores: Final[list[Store]] = []


class Seed(Protocol):
    """The application's sample data: a function whose parameters Typer reads as options."""

    def __call__(self, **options: Any) -> str:
        """Write the data, the same however often it is called, and return what to tell the person.

        Raises:
            ValueError: an option is wrong; the text names it, the rule and the way out.
        """
        ...


class Application(Protocol):
    """What the module named by JOBS_APP offers.

    Attributes:
        __name__: its import name; its own migrations are in `<name>.migrations`.
        store: the database.
        seed: writes sample data.
    """

    __name__: str
    store: Store
    seed: Seed


def load_application() -> tuple[Application, JobBroker]:
    """Import the application and return it with the broker that it set.

    Raises:
        ConfigurationError: there is no such module, it lacks something, or a setting is wrong.
    """
    name = os.environ.get(APP) or DEFAULT_APP
    find_from_here()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(
            f"expected {APP} to be a module that can be imported from here, got: {name!r}; "
            "start jobsctl in the project's folder, or set it to your application's module"
        ) from None
    except ValueError as error:
        if not is_without_broker(error):
            raise
        raise ConfigurationError(without_broker(name)) from None
    missing = [part for part in ("store", "seed") if not hasattr(module, part)]
    broker = dramatiq.get_broker()
    if missing or not isinstance(broker, JobBroker):
        raise ConfigurationError(
            f"expected {APP} to be a module that defines store and seed and calls dramatiq.set_broker "
            f"with a QuorumBroker or InlineBroker, got: {name!r} without {', '.join(missing) or 'a broker'}; "
            f"a module beside `jobs` {NEEDS}"
        )
    application = cast(Application, module)
    _stores.append(application.store)
    return application, broker


def close_application() -> None:
    """Close the idle connections of what was loaded: only then does SQLite leave one file that is whole."""
    while _stores:
        _stores.pop().dispose()


def is_without_broker(error: BaseException) -> bool:
    """Whether an import failed because an actor was declared before a broker of the kit's was set."""
    return "actor options are undefined" in str(error) and not isinstance(
        dramatiq_broker.global_broker, JobBroker
    )


def without_broker(name: str) -> str:
    """Return what somebody is told whose module declares actors on no broker of the kit's."""
    return (
        f"expected {APP} to be a module that sets a broker of the kit's before it declares actors, got: "
        f"{name!r} without one; a module beside `jobs` {NEEDS}"
    )


def find_from_here() -> None:
    """Let modules of the working directory be found: a console script's path does not hold it."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
