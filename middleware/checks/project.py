"""Which modules are there, and what do their names stand for in the end?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from .bindings import Binding, Bindings, How
from .finding import Finding
from .module import Function, Module, read_module, unreadable

_SKIPPED: Final = {"__pycache__", "node_modules", "site-packages"}
NOT_FOLLOWED: Final = {"middleware"}
"""Packages whose names are known, so that nobody has to read them."""
_DEEP: Final = 8


class Place(NamedTuple):
    """A binding in the module that holds it."""

    binding: Binding
    module: Module


class Project:
    """The files to check and, as far as their names lead there, those beside them.

    Attributes:
        findings: about files that cannot be read.
    """

    def __init__(self) -> None:
        self._by_path: dict[Path, Module | None] = {}
        self._by_name: dict[str, Module | None] = {}
        self._bindings: dict[Module, Bindings] = {}
        self.findings: list[Finding] = []

    def add(self, paths: Iterable[Path]) -> None:
        """Read files, and the Python files of folders, to be checked."""
        for path in paths:
            try:
                files = list(_python_files(path))
            except OSError as error:
                self.findings.append(unreadable(path, 1, f"it cannot be listed: {error}", "see its rights"))
                continue
            for file in files:
                module = self._read(file, is_asked=True)
                if module is not None:
                    module.is_asked = True

    @property
    def modules(self) -> list[Module]:
        """The modules to check."""
        found = [each for each in self._by_path.values() if each is not None and each.is_asked]
        return sorted(found, key=lambda each: each.path)

    def at(self, path: Path) -> Module | None:
        """Return the module of a file that was read."""
        return self._by_path.get(path.resolve())

    def bindings(self, module: Module) -> Bindings:
        """Return the names that a module binds."""
        if module not in self._bindings:
            self._bindings[module] = Bindings(module)
        return self._bindings[module]

    # --- names ---

    def seen_from(self, name: str, node: ast.AST, module: Module) -> list[Place]:
        """Return what a name may stand for at a place of a module; none if it is not bound there."""
        bindings = self.bindings(module)
        found = bindings.seen_from(name, node)
        if found:
            return [Place(each, module) for each in found]
        for star in bindings.stars:
            places = self.find(f"{star}.{name}", module)
            if places:
                return places
        return []

    def star_of(self, module: Module) -> str:
        """Return what a module imports every name of, if that is one package whose source is not followed."""
        stars = [each for each in self.bindings(module).stars if self.module(each, module) is None]
        return stars[0] if len(stars) == 1 else ""

    def find(self, dotted: str, importer: Module, depth: int = 0) -> list[Place]:
        """Return what binds an absolute dotted name `module.name`; none if no source here does."""
        source, _, name = dotted.rpartition(".")
        module = self.module(source, importer) if source else None
        if module is None or depth > _DEEP:
            return self._find_in_class(source, name)
        bindings = self.bindings(module)
        found = bindings.of_module(name)
        if found:
            return [Place(each, module) for each in found]
        for star in bindings.stars:
            places = self.find(f"{star}.{name}", module, depth + 1)
            if places:
                return places
        return []

    def _find_in_class(self, dotted: str, name: str) -> list[Place]:
        defined = self.definition(dotted)
        if defined is None:
            return []
        node, module = defined
        bindings = self.bindings(module)
        return [Place(each, module) for each in bindings.of_class(bindings.qualified(node), name)]

    def definition(self, dotted: str) -> tuple[Function | ast.ClassDef, Module] | None:
        """Return the function or class of a dotted name as `qualified` writes it."""
        for cut in range(len(parts := dotted.split(".")) - 1, 0, -1):
            module = self._by_name.get(".".join(parts[:cut]))
            if module is not None:
                node = self.bindings(module).definitions.get(".".join(parts[cut:]))
                return None if node is None else (node, module)
        node_and_module = None
        module = self._by_name.get("")
        if module is not None and dotted in self.bindings(module).definitions:
            node_and_module = (self.bindings(module).definitions[dotted], module)
        return node_and_module

    def qualified(self, node: Function | ast.ClassDef, module: Module) -> str:
        """Return the dotted name of a function or class, with its module's."""
        return f"{module.name}.{self.bindings(module).qualified(node)}"

    # --- modules ---

    def module(self, name: str, importer: Module) -> Module | None:
        """Return the module of that import name, read if its file is beside the importer or above it."""
        if name in self._by_name:
            return self._by_name[name]
        if name.partition(".")[0] in NOT_FOLLOWED:
            return None
        relative = Path(*name.split("."))
        for folder in _roots(importer.path):
            for path in (folder / relative.with_suffix(".py"), folder / relative / "__init__.py"):
                if path.is_file():
                    module = self._read(path, is_asked=False)
                    self._by_name[name] = module
                    return module
        self._by_name[name] = None
        return None

    def _read(self, path: Path, *, is_asked: bool) -> Module | None:
        key = path.resolve()
        if key in self._by_path and (self._by_path[key] is not None or not is_asked):
            return self._by_path[key]
        read = read_module(path, import_name(key))
        if isinstance(read, Finding):
            if is_asked and read not in self.findings:
                self.findings.append(read)
            self._by_path[key] = None
            return None
        self._by_path[key] = read
        self._by_name[read.name] = read
        return read


def import_name(path: Path) -> str:
    """Return the name under which a file is imported: from the first folder that is no package."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(parts)) or path.parent.name


def _roots(path: Path) -> list[Path]:
    """Return the folders in which an absolute import may find its module: those above, and the current."""
    above = list(path.resolve().parents)[:_DEEP]
    here = Path.cwd()
    return above[: above.index(here) + 1] if here in above else [*above, here]


def _python_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for each in sorted(path.iterdir()):
        if each.is_dir():
            is_skipped = each.name in _SKIPPED or each.name.startswith(".") or each.is_symlink()
            if not is_skipped and not (each / "pyvenv.cfg").is_file():
                yield from _python_files(each)
        elif each.suffix == ".py":
            yield each


def is_import(place: Place) -> bool:
    """Whether a place only names another one."""
    return place.binding.how is How.IMPORT
