"""Whom can an email be from, and whom can it go to? Pure."""

from __future__ import annotations

import re
import unicodedata
from email.headerregistry import Address
from typing import Final

LONGEST: Final = 254
"""Characters of an address; RFC 5321 allows a path of 256, with its angle brackets."""

# Without the quoted names and the comments of RFC 5322: nobody has them but those who try out parsers.
_ATOM: Final = r"[\w!#$%&'*+/=?^`{|}~-]+"
_LABEL: Final = r"\w(?:[\w-]*\w)?"
_ADDRESS: Final = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@({_LABEL}(?:\.{_LABEL})*)")
_NAMED: Final = re.compile(r"([^<>]*)<([^<>]+)>")
_BREAKS: Final = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode's control characters, half characters, and separators of lines and paragraphs."""


def mailbox(address: str, name: str = "") -> Address:
    """Return an address with the name of whoever has it.

    Raises:
        ValueError: one of them must not stand in an email's header; names the rule.

    >>> str(mailbox("ada@example.com", "Lovelace, Ada"))
    '"Lovelace, Ada" <ada@example.com>'
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or len(address) > LONGEST:
        raise ValueError(f"expected an address to be name@domain, got: {address[:LONGEST]!r}")
    return Address(one_line("a name", name), found[1], found[2])


def read_mailbox(text: str) -> Address:
    """Return what `name@domain` or `Name <name@domain>` stands for.

    Raises:
        ValueError: it is neither.

    >>> str(read_mailbox("Jobs <jobs@example.com>")), str(read_mailbox("jobs@example.com"))
    ('Jobs <jobs@example.com>', 'jobs@example.com')
    """
    named = _NAMED.fullmatch(text)
    return mailbox(text) if named is None else mailbox(named[2], named[1].strip().strip('"'))


def one_line(what: str, text: str) -> str:
    """Return a text that may stand in a header.

    A line break would let it begin a header of its own, and so would one in an encoded word
    (`=?utf-8?q?=0A?=`), which Python's `email` decodes when it is given one.

    Raises:
        ValueError: it has control characters, or what looks like an encoded word.
    """
    if any(unicodedata.category(each) in _BREAKS for each in text):
        raise ValueError(f"expected {what} to be one line without control characters, got: {text[:200]!r}")
    if "=?" in text:
        raise ValueError(f"expected {what} to hold no encoded word ('=?…?='), got: {text[:200]!r}")
    return text
