"""What is a chat about, without a model? Its own sentences with the most telling words. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

SENTENCES: Final = 3
LONGEST: Final = 300
"""Characters of a sentence that are kept."""

_WORD: Final = re.compile(r"\w{4,}")  # shorter ones are mostly grammar
_END: Final = re.compile(r"(?<=[.!?…])\s+")


def extract(lines: Sequence[str], sentences: int = SENTENCES) -> str:
    """Return the most telling sentences, in their order, each with who said it.

    A word tells more the more sentences it comes up in; a sentence is worth what its words tell on average,
    so that a long one has no advantage.

    Parameters:
        lines: `author: text`, one a message.
        sentences: how many to return at most. Defaults to 3.

    >>> extract([
    ...     "ada: The printer is broken again. Sorry!",
    ...     "bob: Which printer?",
    ...     "ada: The printer on the second floor is broken.",
    ...     "bob: Hm. Lunch first.",
    ... ], sentences=2)
    'ada: The printer is broken again. ada: The printer on the second floor is broken.'
    """
    said = list(dict.fromkeys(each for line in lines for each in _sentences(line)))
    spread = Counter(word for _, sentence in said for word in _words(sentence))
    worth = {each: _worth(_words(each[1]), spread) for each in said}
    best = set(sorted(said, key=lambda each: -worth[each])[:sentences])
    return " ".join(
        f"{author}: {sentence[:LONGEST]}" for author, sentence in said if (author, sentence) in best
    )


def _sentences(line: str) -> Iterator[tuple[str, str]]:
    author, _, text = line.partition(": ")
    for sentence in _END.split(text.strip()):
        if sentence:
            yield author, sentence


def _words(sentence: str) -> set[str]:
    return set(_WORD.findall(sentence.lower()))


def _worth(words: set[str], spread: Counter[str]) -> float:
    return sum(spread[word] for word in words) / (1 + len(words))
