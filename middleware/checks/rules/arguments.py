"""JOB103: does a copy of data travel in a message, where a reference should?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ..actors import Actor
from ..constants import UNKNOWN
from ..finding import Finding
from ..inspection import Inspection, finding
from ..loaded import annotated_data
from ..module import Module

_DICTIONARY: Final = re.compile(
    r"builtins\.dict|typing\.(Dict|Mapping|MutableMapping|DefaultDict|OrderedDict|Counter|TypedDict)"
    r"|typing_extensions\.TypedDict|collections\.(OrderedDict|defaultdict|Counter|abc\.(Mutable)?Mapping)"
)
_BYTES: Final = re.compile(r"builtins\.(bytes|bytearray|memoryview)")
_MOMENT: Final = re.compile(r"datetime\.(datetime|date|time|timedelta)")
_MODEL: Final = re.compile(
    r"pydantic(\.\w+)*\.(BaseModel|RootModel)|pydantic_settings\.BaseSettings|sqlmodel(\.\w+)*\.SQLModel"
    r"|sqlalchemy(\.\w+)*\.(DeclarativeBase|DeclarativeBaseNoMeta|MappedAsDataclass)"
    r"|sqlalchemy(\.\w+)*\.(declarative_base|automap_base)\(\)|sqlalchemy(\.\w+)*\.registry\(\)\.generate_base\(\)"
    r"|flask_sqlalchemy(\.\w+)*\.SQLAlchemy\(\)\.Model|msgspec\.Struct|django(\.\w+)*\.models\.Model"
)
_DATA_CLASS: Final = re.compile(
    r"(dataclasses|pydantic\.dataclasses)\.dataclass|attrs?\.(define|frozen|mutable|s|attrs|dataclass)"
)
_MAPPED: Final = re.compile(r"sqlalchemy(\.\w+)*\.registry\(\)\.(mapped|mapped_as_dataclass)")
_NEW_TYPE: Final = re.compile(r"typing(_extensions)?\.NewType")
_LITERAL: Final = re.compile(r"typing(_extensions)?\.Literal")
_ANNOTATED: Final = re.compile(r"typing(_extensions)?\.Annotated")
_CALLABLE: Final = re.compile(r"(typing|collections\.abc)\.Callable|builtins\.type|typing\.Type")
_FOLLOWING: Final = ("on_success", "on_failure", "on_retry_exhausted")
_CALLBACK: Final = re.compile(r"_?message(_data|_dict)?|message_data")
_DEEP: Final = 12


def check_arguments(inspection: Inspection) -> Iterator[Finding]:
    """Yield parameters that are annotated as data and are not among the actor's snapshots."""
    for actor in inspection.actors:
        snapshots = actor.option("snapshots")
        if snapshots is UNKNOWN or isinstance(snapshots, str) or _follows(actor, inspection):
            continue
        for parameter in _annotated(actor):
            if parameter.arg in (snapshots or ()):
                continue
            what = _Reading(inspection).data(parameter.annotation, actor.home)
            what = what or annotated_data(actor, parameter.arg)
            if what and not actor.is_wrapped:
                yield finding(
                    "JOB103",
                    parameter,
                    actor.home,
                    f"actor {actor.name!r}: {parameter.arg} is {what}: what travels is a copy, stale "
                    "when the job runs, or refused by send()",
                    f"pass an id and read the data in the actor; if the copy is meant, send plain JSON and "
                    f'declare snapshots=("{parameter.arg}",)',
                )


def _follows(actor: Actor, inspection: Inspection) -> bool:
    """Whether Dramatiq itself sends an actor what it gets: the message of a job, a result, an exception."""
    if _CALLBACK.fullmatch(actor.parameter_names[0]) if actor.parameter_names else False:
        return True
    for module in inspection.project.modules:
        if "on_" not in module.text:
            continue
        for node in module.nodes:
            if isinstance(node, ast.keyword) and node.arg in _FOLLOWING:
                if inspection.constants.value(node.value, module) == actor.name:
                    return True
                named = node.value.value if isinstance(node.value, ast.Attribute) else node.value
                if inspection.actor(named, module) is actor or inspection.actor(node.value, module) is actor:
                    return True
    return False


def _annotated(actor: Actor) -> list[ast.arg]:
    arguments = actor.function.args
    variadic = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [each for each in [*actor.parameters, *variadic] if each.annotation is not None]


class _Reading:
    """Reads one annotation."""

    def __init__(self, inspection: Inspection) -> None:
        self._inspection = inspection
        self._depth = 0

    def data(self, annotation: ast.expr | None, module: Module) -> str:
        """Return which kind of data an annotation holds, in words; empty for none."""
        if annotation is None or self._depth > _DEEP:
            return ""
        self._depth += 1
        try:
            return self._data(annotation, module)
        finally:
            self._depth -= 1

    def _data(self, annotation: ast.expr, module: Module) -> str:
        match annotation:
            case ast.Constant(value=str(text)):
                return self._written(text, annotation, module)
            case ast.BinOp(op=ast.BitOr()):
                return self.data(annotation.left, module) or self.data(annotation.right, module)
            case ast.Subscript():
                return self._subscript(annotation, module)
            case ast.Tuple() | ast.List():
                return next(filter(None, (self.data(each, module) for each in annotation.elts)), "")
            case ast.Name() | ast.Attribute() | ast.Call():
                return self._named(annotation, module)
            case _:
                return ""

    def _written(self, text: str, place: ast.expr, module: Module) -> str:
        """Read an annotation that is a text: its names are those of the module."""
        try:
            parsed = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
        module.adopt(parsed, place)
        return self.data(parsed, module)

    def _subscript(self, annotation: ast.Subscript, module: Module) -> str:
        head = self._inspection.origins.of(annotation.value, module)
        if any(_LITERAL.fullmatch(each) or _CALLABLE.fullmatch(each) for each in head):
            return ""
        inner: ast.expr = annotation.slice
        if any(_ANNOTATED.fullmatch(each) for each in head) and isinstance(inner, ast.Tuple):
            inner = inner.elts[0]
        return self.data(annotation.value, module) or self.data(inner, module)

    def _named(self, annotation: ast.expr, module: Module) -> str:
        source, home = self._inspection.constants.source(annotation, module)
        if isinstance(source, ast.ClassDef):
            return self._class(source, home)
        if isinstance(source, ast.Call):
            is_new_type = self._inspection.origins.are(_NEW_TYPE, source.func, home)
            if is_new_type:
                return self.data(source.args[1], home) if len(source.args) == 2 else ""
        elif isinstance(source, ast.expr) and source is not annotation:
            return self.data(source, home)
        origins = self._inspection.origins.of(annotation, module)
        kinds = {_kind(each) for each in origins}
        return kinds.pop() if len(kinds) == 1 else ""

    def _class(self, node: ast.ClassDef, module: Module) -> str:
        """A class is what its bases and decorators make of it."""
        origins = self._inspection.origins
        for decorator in node.decorator_list:
            maker = decorator.func if isinstance(decorator, ast.Call) else decorator
            if origins.are(_DATA_CLASS, maker, module):
                return f"a dataclass ({node.name})"
            if origins.are(_MAPPED, maker, module):
                return f"a model ({node.name})"
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            what = self.data(plain, module)
            if what:
                return re.sub(r" \(.*\)", "", what) + f" ({node.name})"
        return ""


def _kind(origin: str) -> str:
    if _DICTIONARY.fullmatch(origin):
        return "a dict"
    if _BYTES.fullmatch(origin):
        return "bytes"
    if _MOMENT.fullmatch(origin):
        return f"a {origin.partition('.')[2]}"
    if _MODEL.fullmatch(origin):
        return "a model"
    return ""
