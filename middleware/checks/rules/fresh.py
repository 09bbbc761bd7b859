"""JOB107: does a call site put something into a key field that is new with every send?

Such a key tells no two deliveries of one wish apart from two wishes. What is cut to a day or an hour is a key
that somebody chose; so is an id that is stored before it is sent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ..finding import Finding
from ..inspection import Inspection, finding
from ..module import Module
from ..sends import Send, sends

_RANDOM: Final = re.compile(
    r"uuid\.uuid[1467]\(\)|secrets\.\w+\(\)|os\.urandom\(\)|random\.(?!seed|Random|shuffle|choice)\w+\(\)"
    r"|(ulid|ksuid|nanoid|shortuuid|cuid)\.\w+\(\)"
)
_CLOCK: Final = re.compile(
    r"datetime\.datetime\.(now|utcnow|today)\(\)|time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|perf_counter_ns)\(\)"
    r"|pendulum\.(now|DateTime\.now)\(\)|arrow\.(now|utcnow)\(\)|django\.utils\.timezone\.now\(\)"
)
_WHOLE: Final = re.compile(r"builtins\.(str|int|float|repr|round|format)")
_KEEPS_RANDOM: Final = {
    *("hex", "urn", "int", "bytes", "upper", "lower", "strip", "replace", "format", "decode", "encode"),
    *("split", "partition", "ljust", "zfill", "join"),
}
_KEEPS_CLOCK: Final = {"timestamp", "isoformat", "astimezone", "upper", "lower", "strip", "format"}
_FINEST: Final = {"auto", "seconds", "milliseconds", "microseconds"}
_LOG_CALLS: Final = {"debug", "info", "warning", "error", "exception"}
_DEEP: Final = 12


def check_sends(inspection: Inspection) -> Iterator[Finding]:
    """Yield arguments of sends that make a key of their own each time."""
    for send in sends(inspection):
        key = send.actor.option("idempotency_key")
        if not isinstance(key, str):
            continue
        for name, expression in send.arguments.items():
            if not re.search(rf"(?<!\{{)\{{{re.escape(name)}\}}", key):
                continue
            what = _Reading(inspection, send).fresh(expression, send.module)
            if what:
                yield finding(
                    "JOB107",
                    expression,
                    send.module,
                    f"{name} is part of the key of actor {send.actor.name!r} and comes from {what}: "
                    "every send makes a new key, so that no duplicate is ever found",
                    "send the id of what the job is about, made once, where that is stored; or leave the "
                    "field out of the key",
                    send.call.end_lineno or 0,
                )


class _Reading:
    """Reads one argument of a send."""

    def __init__(self, inspection: Inspection, send: Send) -> None:
        self._inspection = inspection
        self._send = send
        self._depth = 0

    def fresh(self, expression: ast.expr, module: Module) -> str:
        """Return what makes a value new each time, as it is written; empty if nothing certainly does."""
        self._depth += 1
        try:
            return "" if self._depth > _DEEP else self._fresh(expression, module)
        finally:
            self._depth -= 1

    def _fresh(self, expression: ast.expr, module: Module) -> str:
        match expression:
            case ast.Call():
                return self._call(expression, module)
            case ast.Attribute():
                what = self.fresh(expression.value, module)
                return what if self._keeps(what, expression.attr) else ""
            case ast.Name():
                return self._name(expression, module)
            case ast.JoinedStr():
                parts = [each for each in expression.values if isinstance(each, ast.FormattedValue)]
                return self._first([each.value for each in parts if not _is_cut(each)], module)
            case ast.BinOp(op=ast.Add()):
                return self._first([expression.left, expression.right], module)
            case ast.BinOp(op=ast.Mod()) if isinstance(expression.left, ast.Constant | ast.JoinedStr):
                right = expression.right
                return self._first(right.elts if isinstance(right, ast.Tuple) else [right], module)
            case ast.BinOp(op=ast.Mult()):
                return self._first([expression.left, expression.right], module)
            case ast.Subscript():
                what = self.fresh(expression.value, module)
                return what if self._keeps(what, "split") else ""
            case ast.NamedExpr() | ast.Await():
                return self.fresh(expression.value, module)
            case _:
                return ""

    def _first(self, expressions: list[ast.expr], module: Module) -> str:
        return next(filter(None, (self.fresh(each, module) for each in expressions)), "")

    def _call(self, call: ast.Call, module: Module) -> str:
        origins = self._inspection.origins
        made = origins.of(call, module)
        if len(made) == 1 and (_RANDOM.fullmatch(each := next(iter(made))) or _CLOCK.fullmatch(each)):
            return f"{ast.unparse(call.func)}()"
        if origins.are(_WHOLE, call.func, module):
            return self.fresh(call.args[0], module) if len(call.args) == 1 and not call.keywords else ""
        if isinstance(call.func, ast.Attribute) and (what := self._method(call, call.func, module)):
            return what
        called = self._inspection.called(call, module)
        if called is not None and not called[0].args.args:  # `def new_id(): return uuid4().hex`
            result = self._inspection.origins.result_of(*called)
            is_all = [each for each in called[0].body if not isinstance(each, ast.Expr)]
            return self.fresh(result, called[1]) if result is not None and len(is_all) == 1 else ""
        return ""

    def _method(self, call: ast.Call, method: ast.Attribute, module: Module) -> str:
        if method.attr in {"format", "join"}:
            inner = [*call.args, *(each.value for each in call.keywords)]
            parts = [
                part
                for each in inner
                for part in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])
            ]
            what = self._first(parts, module)
            if what:
                return what
        what = self.fresh(method.value, module)
        if method.attr == "isoformat":
            steps = [*call.args[1:], *(each.value for each in call.keywords if each.arg == "timespec")]
            if any(self._inspection.constants.value(each, module) not in _FINEST for each in steps):
                return ""
        return what if self._keeps(what, method.attr) else ""

    def _name(self, name: ast.Name, module: Module) -> str:
        """A variable that only sends and the log get; what is stored besides is an id like any other."""
        function = module.function_around(name) or module.tree
        places = self._inspection.project.seen_from(name.id, name, module)
        if len(places) != 1 or places[0].module is not module:
            return ""
        binding = places[0].binding
        statement = binding.node
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or binding.value is None:
            return ""
        if (module.function_around(statement) or module.tree) is not function:
            return ""
        uses = [
            node
            for part in function.body
            for node in ast.walk(part)
            if isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Load)
        ]
        if not all(self._is_sent_or_told(each, module) for each in uses):
            return ""
        return self.fresh(binding.value, module)

    def _is_sent_or_told(self, use: ast.Name, module: Module) -> bool:
        for outer in module.around(use):
            if outer is self._send.call:
                return True
            if not isinstance(outer, ast.Call):
                continue
            if isinstance(outer.func, ast.Attribute) and outer.func.attr in _LOG_CALLS:
                return True
            if self._inspection.origins.of(outer.func, module) == {"builtins.print"}:
                return True
        return False

    def _keeps(self, what: str, step: str) -> bool:
        """Whether a step leaves a value as new as it was."""
        if not what:
            return False
        is_clock = any(word in what.lower() for word in ("now", "time", "today", "perf_counter", "monotonic"))
        return step in (_KEEPS_CLOCK if is_clock else _KEEPS_RANDOM)


def _is_cut(part: ast.FormattedValue) -> bool:
    """Whether a format is applied: `{now:%Y-%m-%d}` is a day."""
    return part.format_spec is not None
