"""A key is rendered from a template without two jobs ever sharing one by accident."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from middleware.effects.arguments import HASH_BYTES, Parameters, args_hash
from middleware.effects.keys import LONGEST_KEY, KeyTemplate

NAMES = ("task_id", "message_id")
VALUES = st.one_of(
    st.integers(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40),
)


def rendered(text: str, **values: Any) -> str:
    return KeyTemplate(text, list(values)).render(values)


def test_a_template_is_filled_in() -> None:
    """Fields are replaced by the values, everything else stays, doubled braces stand for one."""
    assert rendered("credit:{task_id}:{message_id}", task_id="t1", message_id=2) == "credit:t1:2"
    assert rendered("{a}", a=-7) == "-7"
    assert rendered("{{x}}:{a}:{a}!", a="v") == "{x}:v:v!"
    assert rendered("{a}:{b}", a=True, b=False) == "true:false"


@example("a:", "b", "a%3A", "b")
@example("a:b", "c", "a", "b:c")
@given(VALUES, VALUES, VALUES, VALUES)
def test_different_values_make_different_keys(a: Any, b: Any, c: Any, d: Any) -> None:
    """Two jobs share a key only if their values read the same."""
    assume((str(a), str(b)) != (str(c), str(d)))
    template = KeyTemplate("x:{a}:{b}", ("a", "b"))
    assert template.render({"a": a, "b": b}) != template.render({"a": c, "b": d})


@pytest.mark.parametrize(
    "value", [None, "", 1.5, float("nan"), b"x", [], ["a"], {}, ("a",), object(), "a\0b", "\ud800"]
)
def test_a_value_that_is_no_identity_is_refused(value: Any) -> None:
    """The error names the parameter, the rule, the value and the way out."""
    with pytest.raises(ValueError, match=r"expected task_id, a part of the idempotency key.*pass the id"):
        rendered("credit:{task_id}", task_id=value)


def test_a_key_has_at_most_512_characters() -> None:
    """A longer key is refused, and told what to do instead."""
    assert len(rendered("k:{a}", a="x" * (LONGEST_KEY - 2))) == LONGEST_KEY
    with pytest.raises(ValueError, match="at most 512 characters, got: 513; use short ids"):
        rendered("k:{a}", a="x" * (LONGEST_KEY - 1))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no field", "at least one field"),
        ("", "at least one field"),
        ("{{task_id}}", "at least one field"),
        ("{unknown}", r"plain parameter names.*\(task_id, message_id\).*replace \{unknown\}"),
        ("{}", r"replace \{\}"),
        ("{0}", r"replace \{0\}"),
        ("{task_id.hex}", r"replace \{task_id.hex\}"),
        ("{task_id[0]}", r"replace \{task_id\[0\]\}"),
        ("{task_id!r}", r"replace \{task_id!r\}"),
        ("{task_id:>10}", r"replace \{task_id:>10\}"),
        ("{task_id:{message_id}}", "replace"),
        ("{task_id", "be a template"),
        ("task_id}", "be a template"),
        ("{task_id}{message_id}", "a text between two fields"),
        ("\0{task_id}", "free of NUL"),
        (17, "be a text"),
    ],
)
def test_a_template_of_another_form_is_refused(text: Any, complaint: str) -> None:
    """A template that is not literals and plain parameters is refused, with the way out."""
    with pytest.raises(ValueError, match=f"expected idempotency_key to .*{complaint}"):
        KeyTemplate(text, NAMES)


def test_templates_that_render_the_same_keys_have_one_shape() -> None:
    """The names of the fields do not tell templates apart, what stands between them does."""
    one, other = KeyTemplate("k:{task_id}", NAMES), KeyTemplate("k:{message_id}", NAMES)
    assert one.shape == other.shape
    assert one.shape != KeyTemplate("k:{task_id}:", NAMES).shape
    assert one.shape != KeyTemplate("{task_id}k:", NAMES).shape


def charge(task_id: str, message_id: str = "m", *rest: str, note: str = "", **more: str) -> None: ...


def plain(one: str, two: str = "2") -> None: ...


def test_arguments_are_the_same_however_they_are_passed() -> None:
    """Positional, by name and by default: one set of arguments, one hash."""
    parameters = Parameters(plain)
    expected = {"one": "1", "two": "2"}
    for args, kwargs in (
        (("1",), {}),
        (("1", "2"), {}),
        ((), {"two": "2", "one": "1"}),
        (("1",), {"two": "2"}),
    ):
        assert parameters.bind(args, kwargs) == expected
        assert args_hash(parameters.bind(args, kwargs)) == args_hash(expected)


def test_fields_of_a_key_are_single_parameters() -> None:
    """*args and **kwargs are bound and hashed, but are no fields."""
    parameters = Parameters(charge)
    assert parameters.names == ("task_id", "message_id", "note")
    bound = parameters.bind(("t", "m", "x"), {"y": "z"})
    assert bound == {"task_id": "t", "message_id": "m", "rest": ("x",), "note": "", "more": {"y": "z"}}


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), (("a", "b", "c"), {}), (("a",), {"x": 1}), (("a",), {"one": 1})]
)
def test_arguments_that_do_not_fit_are_refused(args: Any, kwargs: Any) -> None:
    """Missing, too many, unknown or doubled arguments are named together with the signature."""
    with pytest.raises(
        ValueError, match=r"expected its arguments to fit \(one: .*; send what the actor takes"
    ):
        Parameters(plain).bind(args, kwargs)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_the_hash_tells_arguments_apart(one: Any, other: Any) -> None:
    """Equal arguments have one hash of 16 bytes, different ones do not; 1, True and "1" are different."""
    assert len(args_hash({"a": one})) == HASH_BYTES
    assert (args_hash({"a": one}) == args_hash({"a": other})) == (_typed(one) == _typed(other))


def _typed(value: Any) -> Any:
    """Return the value with its types, because 1 == True."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return [_typed(item) for item in value] if isinstance(value, list) else (type(value), value)


def test_the_hash_is_the_same_before_and_after_the_wire() -> None:
    """A tuple arrives as a list, and the order of a dict is nobody's promise."""
    assert args_hash({"a": (1, 2)}) == args_hash({"a": [1, 2]})
    assert args_hash({"a": {"x": 1, "y": 2}}) == args_hash({"a": {"y": 2, "x": 1}})


def test_arguments_that_json_cannot_carry_are_refused() -> None:
    """A direct call with an object as an argument is told to pass ids."""
    with pytest.raises(ValueError, match="expected its arguments to be plain JSON"):
        args_hash({"a": object()})
