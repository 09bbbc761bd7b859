"""Which rows does `--only` mean?"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.row import Row


def chosen(rows: Sequence[Row], only: str) -> list[Row]:
    """Return the rows that are asked for, in the table's order.

    Parameters:
        rows: the table.
        only: names joined by commas; `send` means all rows that begin with `send-`. Empty means all rows.

    Raises:
        ValueError: there is no such row.
    """
    words = [word.strip() for word in only.split(",") if word.strip()]
    for word in words:
        if not any(_is_meant(row, word) for row in rows):
            names = ", ".join(row.name for row in rows)
            raise ValueError(f"expected --only to name rows, got: {word!r}; there are {names}")
    return [row for row in rows if not words or any(_is_meant(row, word) for word in words)]


def _is_meant(row: Row, word: str) -> bool:
    return row.name == word or row.name.startswith(f"{word}-")
