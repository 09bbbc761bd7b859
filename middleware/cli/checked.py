"""Which application does `jobsctl check` look at? If it cannot be loaded, that is a finding."""

from __future__ import annotations

import importlib
import importlib.util
import os
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import dramatiq
from dramatiq import broker as dramatiq_broker

from ..checks import Finding
from ..errors import ConfigurationError
from ..transport.broker import JobBroker
from ..transport.wrapping import function_of
from .application import APP, DEFAULT_APP, find_from_here, is_without_broker, without_broker


@dataclass(slots=True)
class CheckedApplication:
    """An application as far as it can be loaded.

    Attributes:
        paths: its files and folders, and those that were asked for.
        module: None if it cannot be imported.
        broker: the one that it set; None if it set none of the kit's.
        error: what importing it raised.
        findings: about the loading.
    """

    paths: list[Path]
    module: ModuleType | None = None
    broker: JobBroker | None = None
    error: BaseException | None = None
    findings: list[Finding] = field(default_factory=list)


def load_checked(extra: Sequence[Path]) -> CheckedApplication:
    """Load the application that JOBS_APP names, to be checked together with further paths.

    Raises:
        ConfigurationError: there is no such module, and it was named or nothing else is to be checked.
    """
    name = os.environ.get(APP) or DEFAULT_APP
    find_from_here()
    own = _files_of(name)
    if own is None and (os.environ.get(APP) or not extra):
        raise ConfigurationError(
            f"expected {APP} to be a module that can be imported from here, got: {name!r}; "
            "start jobsctl in the project's folder, or set it to your application's module"
        )
    checked = CheckedApplication([_shown(path) for path in [*(own or []), *extra]])
    if own is not None:
        _load(name, checked)
    if checked.broker is not None:
        checked.paths += [_shown(path) for path in _files_of_actors(checked.broker)]
    return checked


def _load(name: str, checked: CheckedApplication) -> None:
    try:
        checked.module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # whatever an application raises is what there is to tell
        checked.error = error
        checked.findings.append(_not_loaded(name, error, checked.paths))
        return
    broker = dramatiq_broker.global_broker
    if isinstance(broker, JobBroker):
        checked.broker = broker
        return
    checked.findings.append(
        Finding(
            str(checked.paths[0]),
            0,
            "JOB003",
            f"expected {APP} to be a module that calls dramatiq.set_broker with a QuorumBroker or "
            f"InlineBroker, got: {name!r} with {'none' if broker is None else type(broker).__name__}",
            "begin it with `import jobs`, or see that module for an example",
        )
    )


def _not_loaded(name: str, error: BaseException, paths: Sequence[Path]) -> Finding:
    file, line = _place(error, paths) or (str(paths[0]), 0)
    if is_without_broker(error):
        why, _, fix = without_broker(name).rpartition("; ")
        return Finding(file, line, "JOB003", why, fix, line)
    text = " ".join(str(error).split()) or type(error).__name__
    known = isinstance(error, ConfigurationError | dramatiq.middleware.MiddlewareError)
    why = f"{name!r} cannot be loaded: {text if known else f'{type(error).__name__}: {text}'}"
    return Finding(file, line, "JOB003", why, "correct it; what it would have told was not checked", line)


def _place(error: BaseException, paths: Sequence[Path]) -> tuple[str, int] | None:
    """Return the innermost line of the checked files at which an import failed."""
    roots = [path.resolve() for path in paths]
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename).resolve()
        if any(file == root or root in file.parents for root in roots):
            found = (str(_shown(file)), frame.lineno or 0)
    return found


def _files_of(name: str) -> list[Path] | None:
    """Return the folder of a module's top package, or its file; None if there is no such module."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
        own = spec if spec is not None and spec.origin else importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if own is None:
        return None
    if own.origin and Path(own.origin).name == "__init__.py":
        return [Path(own.origin).parent]
    return [Path(own.origin)] if own.origin and Path(own.origin).is_file() else None


def _files_of_actors(broker: JobBroker) -> Iterator[Path]:
    """Yield where the declared actors are, other than in installed packages."""
    names = {function_of(actor).__module__ for actor in broker.actors.values()}
    for name in sorted(names):
        for path in _files_of(name) or []:
            if not _is_installed(path):
                yield path


def _is_installed(path: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & set(path.resolve().parts))


def _shown(path: Path) -> Path:
    """Return a path as a person in this folder would write it."""
    absolute, here = path.resolve(), Path.cwd().resolve()
    return absolute.relative_to(here) if here in absolute.parents or absolute == here else path
