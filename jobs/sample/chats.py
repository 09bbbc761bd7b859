"""Chats to be summarised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .. import store
from .inserting import insert_missing

_SAID: Final = (
    ("ada", "The delivery for {chat} has not arrived yet. It was promised for Monday."),
    ("support", "Sorry to hear that! The carrier says the delivery waits in its depot."),
    ("ada", "Can the delivery be sent to the office instead?"),
    ("support", "Yes. The carrier brings the delivery to the office tomorrow."),
    ("ada", "Thanks a lot."),
)


def write_chats(chats: Sequence[str]) -> int:
    """Write chats with their messages that are not there yet, and return how many chats are new.

    Parameters:
        chats: their ids; each has two to five messages, of which the first names the chat.
    """
    rows = [{"id": each, "title": f"About {each}"} for each in chats]
    with store.engine.begin() as connection:
        insert_missing(connection, "chat_messages", _messages(chats))
        return insert_missing(connection, "chats", rows)


def _messages(chats: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for number, chat in enumerate(chats):
        for position, (author, text) in enumerate(_SAID[: 2 + number % 4], start=1):
            yield {"chat_id": chat, "position": position, "author": author, "text": text.format(chat=chat)}
