"""What is said of a chat when no model is asked?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.chats.extract import LONGEST, SENTENCES, extract


def test_what_is_said_most_often_is_what_it_is_about() -> None:
    """Sentences whose words come up again are taken, in their order; small talk is not."""
    lines = [
        "ada: Good morning! The invoice for March is wrong.",
        "bob: Nice weather today, too.",
        "ada: The invoice lists March twice. Please send a new invoice for March.",
        "bob: Sure.",
    ]
    assert extract(lines, sentences=2) == (
        "ada: The invoice for March is wrong. ada: The invoice lists March twice."
    )


@pytest.mark.parametrize(
    ("lines", "summary"),
    [([], ""), (["ada: Hi"], "ada: Hi"), (["ada: Hi", "ada: Hi"], "ada: Hi"), (["ada: "], "")],
)
def test_little_is_summarised_by_itself(lines: list[str], summary: str) -> None:
    """A short chat is its own summary, without what was said before."""
    assert extract(lines) == summary


@given(st.lists(st.tuples(st.sampled_from(["ada", "bob"]), st.text()), max_size=20))
def test_a_summary_is_short(said: list[tuple[str, str]]) -> None:
    """Whatever is said, a summary has at most so many sentences of at most so many characters."""
    summary = extract([f"{author}: {text}" for author, text in said])
    assert len(summary) <= SENTENCES * (LONGEST + len("ada:  "))
