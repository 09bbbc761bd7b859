"""Do imports point one way, so that each room can be read without those above it?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import ROOT, sources

GROUND = {"errors", "durations", "logs"}
BELOW = {
    "store": set[str](),
    "transport": set[str](),
    "effects": {"transport", "store"},
    "failures": {"transport"},
    "observe": {"transport"},
    "configuration": {"transport", "store"},
    "checks": {"transport", "store", "effects"},
    "testing": {"transport", "store", "effects", "failures"},
    "cli": {"transport", "store", "effects", "failures", "observe", "configuration", "checks"},
}
"""Room → the rooms that it may import from, besides itself and the ground."""


def imported(file: Path) -> Iterator[tuple[str, ...]]:
    """Yield the absolute dotted names that a file imports, wherever in it and for whatever purpose."""
    package = file.parts[:-1]
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = tuple(node.module.split(".")) if node.module else ()
            yield from ((*start, *module, alias.name) for alias in node.names)


def rooms_used(file: Path) -> set[str]:
    """Return the rooms, and the modules beside them, that a file of the library imports from."""
    return {name[1] for name in imported(file) if name[0] == "middleware"}


def test_every_room_has_its_place() -> None:
    """Each folder and module of the library is either a room with its place in the order, or ground."""
    tops = {Path(file.parts[1]).stem for file in sources("middleware")} - {"__init__"}
    assert tops == GROUND | set(BELOW)


def test_the_order_has_no_circle() -> None:
    """A room is never below one that is below it."""
    for room, below in BELOW.items():
        assert not any(room in BELOW[other] for other in below), room


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_from_below_only(room: str) -> None:
    """Nothing in a room imports from a room beside or above it, nor through the library's public names."""
    wrong = {
        str(file): upwards
        for file in sources(f"middleware/{room}")
        if (upwards := rooms_used(file) - BELOW[room] - GROUND - {room})
    }
    assert not wrong


def test_the_ground_imports_nothing_else() -> None:
    """Errors, durations and logs stand on their own."""
    for name in sorted(GROUND):
        assert rooms_used(Path(f"middleware/{name}.py")) <= GROUND, name


@pytest.mark.parametrize(
    ("folder", "foreign"),
    [
        ("middleware", {"jobs", "deploy", "tests"}),
        ("jobs", {"deploy", "tests"}),
        ("deploy", {"jobs", "middleware", "tests"}),
    ],
)
def test_a_top_folder_knows_nothing_of_those_above(folder: str, foreign: set[str]) -> None:
    """The library never imports the application, nor either of them the tests or what starts services."""
    wrong = {str(file): name for file in sources(folder) for name in imported(file) if name[0] in foreign}
    assert not wrong


def test_only_commands_import_the_command_line() -> None:
    """What the application needs is no part of `jobsctl`."""
    wrong = [
        str(file) for file in sources("jobs") for name in imported(file) if name[:2] == ("middleware", "cli")
    ]
    assert not wrong


def test_only_the_plugin_imports_pytest() -> None:
    """Who runs the kit in production needs no pytest."""
    users = [
        str(file)
        for file in sources("middleware", "jobs")
        if ("pytest",) in {name[:1] for name in imported(file)}
    ]
    assert users == ["middleware/testing/plugin.py"]
