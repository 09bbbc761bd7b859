"""Resources to be found by what they say."""

from __future__ import annotations

from collections.abc import Sequence

from .. import store
from .inserting import insert_missing


def write_resources(resources: Sequence[str], *, version: int = 1) -> int:
    """Write resources that are not there yet, and return how many are new.

    Parameters:
        resources: their ids.
        version: which version of each. Its text holds a word that no other version and no other resource
            has, see `word_of`. Defaults to 1.
    """
    rows = [
        {
            "id": each,
            "version": version,
            "title": f"Guide to {each}",
            "body": f"How to set up {each}, and what {word_of(each, version)} stands for.",
        }
        for each in resources
    ]
    with store.engine.begin() as connection:
        return insert_missing(connection, "resources", rows)


def word_of(resource: str, version: int) -> str:
    """Return the word that is in this version of this sample resource only.

    >>> word_of("resource-7", 2)
    'resource7edition2'
    """
    return f"{resource.replace('-', '')}edition{version}"
