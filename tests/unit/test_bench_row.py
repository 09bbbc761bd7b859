"""When does a row reach its target?"""

from __future__ import annotations

import pytest

from tests.bench.row import Target


def test_a_ratio_is_taken_round_by_round() -> None:
    """A drift of the machine that meets both contestants of a round leaves the ratio as it is."""
    assert Target(to="stock", at_least=2.0).values({"kit": [20, 10], "stock": [10, 5]}) == [2.0, 2.0]


def test_a_figure_without_a_rival_is_taken_as_it_is() -> None:
    """A target that names no rival compares the contestant's own figure."""
    assert Target(at_most=10).values({"kit": [3.0, 4.0]}) == [3.0, 4.0]


@pytest.mark.parametrize(
    ("target", "kit", "reached"),
    [
        (Target(to="stock", at_least=2), [19, 20, 90], True),
        (Target(to="stock", at_least=2), [90, 19, 18], False),
        (Target(at_most=10), [9, 10, 99], True),
        (Target(at_most=10), [9, 11, 12], False),
        (Target(at_most=0), [0, 0, 0], True),
    ],
)
def test_the_median_decides(target: Target, kit: list[float], reached: bool) -> None:
    """One good or bad round decides nothing; the bound itself is reached."""
    assert target.is_reached({"kit": kit, "stock": [10, 10, 10]}) is reached


@pytest.mark.parametrize("samples", [{"kit": [1.0]}, {"stock": [1.0]}, {}])
def test_without_a_contestant_nothing_is_said(samples: dict[str, list[float]]) -> None:
    """A ratio without one of its sides is neither reached nor missed."""
    assert Target(to="stock", at_least=2).is_reached(samples) is None


@pytest.mark.parametrize("bounds", [{}, {"at_least": 1.0, "at_most": 2.0}])
def test_a_target_has_one_bound(bounds: dict[str, float]) -> None:
    """No bound, or two, is refused where the target is declared."""
    with pytest.raises(ValueError, match="at_least or at_most"):
        Target(**bounds)  # type: ignore[arg-type]  # the test passes what a caller may


def test_more_margin_is_better_in_both_directions() -> None:
    """The margin is 1 on the bound and more beyond it, whether low or high figures are good."""
    assert Target(at_least=2).margin(3.0) == 1.5
    assert Target(at_most=10).margin(5.0) == 2.0


def test_a_target_names_what_it_compares() -> None:
    """A ratio names both sides, a figure its contestant."""
    assert Target(to="pika", at_least=0.7).name == "kit ÷ pika"
    assert Target(at_most=10).name == "kit"
