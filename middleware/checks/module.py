"""What is in a source file? Its tree, and for each node what is around it."""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from .finding import Finding

_SHARED: Final = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
"""Nodes of which a tree has one for all its places."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A parsed file.

    Parameters:
        path: where it is.
        name: its import name.
        text: its source.
        tree: the same, parsed.

    Attributes:
        nodes: all of the tree.
        is_asked: it is one of those that are to be checked, not only one that they import.
    """

    def __init__(self, path: Path, name: str, text: str, tree: ast.Module) -> None:
        self.path = path
        self.name = name
        self.text = text
        self.tree = tree
        self.is_asked = False
        self._parents: dict[ast.AST, ast.AST] = {}
        self.nodes = list(ast.walk(tree))
        self._note_parents(self.nodes)

    def _note_parents(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, _SHARED):
                    self._parents[child] = node

    def adopt(self, tree: ast.expr, place: ast.AST) -> None:
        """Take an expression that was parsed apart as standing at a place, which its names are seen from."""
        self._note_parents(ast.walk(tree))
        for node in ast.walk(tree):
            ast.copy_location(node, place)
        self._parents[tree] = place

    @property
    def package(self) -> str:
        """What a relative import starts from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return what a node is directly in; None for the module itself."""
        return self._parents.get(node)

    def around(self, node: ast.AST) -> list[ast.AST]:
        """Return what a node is in, from the inside out."""
        found = []
        outer = self._parents.get(node)
        while outer is not None:
            found.append(outer)
            outer = self._parents.get(outer)
        return found

    def function_around(self, node: ast.AST) -> Function | None:
        """Return the function whose body a node is in."""
        inner = node
        for outer in self.around(node):
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) and inner in outer.body:
                return outer
            inner = outer
        return None


def read_module(path: Path, name: str) -> Module | Finding:
    """Return a file's module, or the finding that it cannot be read."""
    try:
        with tokenize.open(path) as file:  # in the encoding that the file itself declares
            text = file.read()
    except (OSError, SyntaxError, ValueError, LookupError) as error:
        return unreadable(path, 1, f"it cannot be read: {error}", "save it as UTF-8 text")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the file's own escapes
            return Module(path, name, text, ast.parse(text, str(path)))
    except SyntaxError as error:
        return unreadable(path, error.lineno or 1, f"it is no Python: {error.msg}", "correct the syntax")
    except (ValueError, RecursionError, MemoryError) as error:
        return unreadable(
            path, 1, f"it cannot be parsed: {str(error) or type(error).__name__}", "simplify it"
        )


def unreadable(path: Path, line: int, why: str, fix: str) -> Finding:
    """Return the finding that a file or folder cannot be read."""
    return Finding(str(path), line, "JOB001", why, fix, line)
