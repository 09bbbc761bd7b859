"""Whose code does a sampled stack run in, and what does it wait for? Pure; `profile` takes the samples.

py-spy's raw format is one stack a line, outermost frame first, and how often it was seen::

    thread (12): Thread-4;WorkerThread.run (/…/dramatiq/worker.py);… 17
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]

DATABASE: Final = "waits for the database"
BROKER: Final = "waits for the broker"
IDLE: Final = "idle"
OTHER: Final = "other"

_LAYERS: Final = (
    ("/site-packages/pika/", "client: pika"),
    ("/site-packages/psycopg", "client: psycopg"),
    ("/site-packages/dramatiq/", "Dramatiq"),
    ("/site-packages/sqlalchemy/", "SQLAlchemy"),
    ("<sqlalchemy", "SQLAlchemy"),  # functions that SQLAlchemy writes itself
    (f"{ROOT}/middleware/", "kit"),
    (f"{ROOT}/jobs/", "application"),
    (f"{ROOT}/tests/bench/", "benchmark"),
)
_WAITS: Final = (
    ("wait", "/psycopg/connection.py", DATABASE),
    ("poll", "/pika/adapters/select_connection.py", BROKER),
    ("worker_process", "/dramatiq/cli.py", IDLE),  # the main thread, until a signal comes
)
_STANDARD_WAITS: Final = (
    ("wait", "/threading.py"),
    ("select", "/selectors.py"),
    ("get", "/queue.py"),
)
_WAITED_FOR: Final = (
    ("/middleware/transport/sending.py", BROKER),  # a sender, for its confirm
    ("/sqlalchemy/pool/", DATABASE),  # a connection of the pool
)
_ROLES: Final = (
    ("WorkerThread.run", "worker threads"),
    ("ConsumerThread.run", "consumer thread"),
    ("Publisher._run", "publisher thread"),
)


class Frame(NamedTuple):
    """A function on the stack."""

    function: str
    file: str

    @property
    def layer(self) -> str | None:
        """Whose code it is; None for the standard library and what nobody knows."""
        return next((layer for mark, layer in _LAYERS if mark in self.file), None)

    def is_in(self, name: str, file: str) -> bool:
        """Whether it is a function or method of that name in a file with that end."""
        return self.function.rpartition(".")[2] == name and self.file.endswith(file)

    def __str__(self) -> str:
        return f"{self.function} ({short(self.file)})"


class Sample(NamedTuple):
    """A stack, outermost frame first, and how often it was seen."""

    frames: tuple[Frame, ...]
    times: int


def read(raw: Iterable[str]) -> Iterator[Sample]:
    """Read py-spy's raw format, with or without threads and line numbers."""
    for line in raw:
        stack, _, times = line.strip().rpartition(" ")
        if stack:
            frames = (_frame(text) for text in stack.split(";") if not text.startswith("thread ("))
            yield Sample(tuple(frames), int(times))


def _frame(text: str) -> Frame:
    function, _, place = text.partition(" (")
    file, colon, line = place.removesuffix(")").rpartition(":")
    return Frame(function, file if colon and line.isdigit() else place.removesuffix(")"))


def owner(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame of a known layer: it called whatever of the standard library runs."""
    return next((frame for frame in reversed(tuple(frames)) if frame.layer), None)


def layer_of(frames: Iterable[Frame]) -> str:
    """Return whose code a stack runs."""
    frame = owner(frames)
    return (frame and frame.layer) or OTHER


def waits_for(frames: tuple[Frame, ...]) -> str | None:
    """Return what a thread waits for, None if it works or wants to; asked of one without the lock."""
    innermost = frames[-1]
    for name, file, what in _WAITS:
        if innermost.is_in(name, file):
            return what
    if not any(innermost.is_in(*each) for each in _STANDARD_WAITS):
        return None
    return next((what for mark, what in _WAITED_FOR if any(mark in f.file for f in frames)), IDLE)


def role_of(frames: Iterable[Frame]) -> str:
    """Return what a thread is there for."""
    functions = {frame.function for frame in frames}
    return next((role for function, role in _ROLES if function in functions), "other threads")


def hot(samples: Iterable[Sample]) -> dict[str, Counter[str]]:
    """Return layer → function → how often it ran, with what it called of the standard library."""
    found: dict[str, Counter[str]] = {}
    for frames, times in samples:
        mine, innermost = owner(frames), frames[-1]
        name = str(innermost) if mine is None else str(mine)
        if mine not in (None, innermost):
            name += f" › {innermost.function}"
        found.setdefault(layer_of(frames), Counter())[name] += times
    return found


def inclusive(samples: Iterable[Sample]) -> Counter[str]:
    """Return function of a known layer → how often it was anywhere on the stack."""
    found: Counter[str] = Counter()
    for frames, times in samples:
        for name in {str(frame) for frame in frames if frame.layer}:
            found[name] += times
    return found


def short(file: str) -> str:
    """Return a path from its package on.

    >>> short("/somewhere/site-packages/pika/frame.py"), short("/usr/lib/python3.11/json/decoder.py")
    ('pika/frame.py', 'json/decoder.py')
    """
    for mark in ("/site-packages/", f"{ROOT}/", "/lib/python3"):
        _, found, rest = file.rpartition(mark)
        if found:
            return rest.partition("/")[2] if mark.startswith("/lib") else rest
    return file
