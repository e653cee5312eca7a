"""The gazetteer: which names are places, from GeoNames (`places.txt`, made by `tools/make_places.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import attrs

__all__ = ["MOST_WORDS", "Gazetteer", "gazetteer"]

MOST_WORDS = 4
"""The most words of a name in the table."""


@attrs.frozen(eq=False)
class Gazetteer:
    """Names as `read` splits them into words, joined by a space.

    `names` holds all places but `regions` (countries, states, parts of countries); `words` are those of both that are
    English words, too; `others` gives for a name the one that stands for all names of the same place;
    `beginnings` are the first words of names of several.
    """

    names: frozenset[str]
    words: frozenset[str]
    regions: frozenset[str]
    others: Mapping[str, str]
    beginnings: frozenset[str]

    def same(self, name: str) -> str:
        """Return the name that stands for all names of a place: `munchen` and `munich` have the same."""
        return self.others.get(name, name)

    def longest(self, words: Sequence[str], place: int) -> int:
        """Count the words of the longest name that begins at a place of a text; 0 if none does."""
        word = words[place]
        if word not in self.beginnings:
            return 1 if word in self.names or word in self.regions else 0
        for count in range(min(MOST_WORDS, len(words) - place), 1, -1):
            name = " ".join(words[place : place + count])
            if name in self.names or name in self.regions:
                return count
        return 1 if word in self.names or word in self.regions else 0


@lru_cache(maxsize=1)
def gazetteer() -> Gazetteer:
    """Read the table; it is read once, when the first text is looked through for places."""
    table = (files(__package__) / "places.txt").read_text(encoding="ascii")
    towns, words, regions, pairs = (part.split("\n") for part in table.split("\n\n"))
    others: dict[str, str] = {}
    for pair in pairs:
        known, _, name = pair.partition("=")
        others[name] = others[known] = others.get(known, known)
    names = frozenset([*towns, *words, *others])
    beginnings = frozenset([name[: name.index(" ")] for name in (*towns, *regions, *others) if " " in name])
    return Gazetteer(names, frozenset(words), frozenset(regions), others, beginnings)
