"""The gazetteer: which names are places, and how a name stands in a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import attrs

from keval_metrics_weather.reading.words import Text, vocabulary, word_set

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
        """Count the words of the longest name that begins at a place of a text; 0 if none does, also at its end."""
        word = words[place] if place < len(words) else ""
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


TIME_WORDS = frozenset(vocabulary("time words"))
_FUNCTION_WORDS = frozenset(vocabulary("function words"))
_WEATHER_WORDS = frozenset(vocabulary("weather words"))
NO_NAMES = TIME_WORDS | _FUNCTION_WORDS | _WEATHER_WORDS
"""Capitalised words that are no name of a place."""

NEVER_PLACES = NO_NAMES | frozenset(vocabulary("never places"))
"""Words of a question that are never a place, though the table may list one of that name."""

NO_UNKNOWN_PLACES = NEVER_PLACES | frozenset(vocabulary("no unknown places"))
"""Words in lower case that follow "in" or "for" without being a place that the table does not list."""


BEFORE_A_PLACE = frozenset({"in", "for", "at", "near", "to", "from", "around", "of", "visiting", "about", "over"})
LOCATING = frozenset({"in", "near", "at", "around", "visiting"})
CONTRASTING = frozenset({"while", "whereas", "but", "and", "than", "versus", "vs", "or", "like", "as", "with"})
SAYING = word_set(
    "is has will enjoys sees gets currently stays remains at only sits reaches hits can looks should had was : ( ,"
    " | – today tomorrow now tonight"
)
ANOTHER = frozenset({"and", "or", "vs", "versus", ","})
_PARTICLES = word_set("de da do del di la le los las der den upon sur am el i")
_MOST_WORDS = 4


class Place(NamedTuple):
    """A place named at offset `start`; `words` are its name in lower case without accents, `name` as written.

    `key` is the same for all names of a place.
    """

    name: str
    words: tuple[str, ...]
    start: int
    key: str


def place_key(words: Iterable[str]) -> str:
    """Return what all names of a place have in common: `munich` for München."""
    return gazetteer().same(" ".join(words))


def is_code(text: Text, at: int) -> bool:
    """Say whether a word is a code such as `DE`, which says where a place is but names none."""
    if len(text.words[at]) != 2 or text.caseless:
        return False
    start = text.starts[at]
    return text.original[start : start + 2].isupper()


def after_regions(text: Text, at: int) -> int:
    """Return the place after the regions that say where a place is: "Mobile, Alabama", "Kingston (Jamaica)"."""
    regions = gazetteer().regions
    while at < len(text.words):
        after = at + 1 if text.words[at] in (",", "(") else at
        for count in (2, 1):
            if " ".join(text.words[after : after + count]) in regions and _is_region(text, after, after > at):
                after += count
                break
        else:
            return at
        at = after + 1 if text.padded[after] == ")" else after
    return at


def _is_region(text: Text, at: int, apart: bool) -> bool:
    """Say whether a word that may be a region's is one: short ones only in capitals or after a comma."""
    return len(text.words[at]) > 3 or apart or text.capitalised(at) or text.caseless


def is_name(text: Text, place: int) -> bool:
    word = text.padded[place]
    if word[:1].isalpha() and word not in NO_NAMES and text.capitalised(place):
        return len(word) > 1 or not word.isascii()  # a letter is none, as in Washington, D.C.
    return False


def name_at(text: Text, place: int) -> int:
    """Count the words of the capitalised name that begins at a place, particles within it included."""
    if place >= len(text.words) or not text.capitalised(place):
        return 0
    end = place
    if text.words[place] == "the" and is_name(text, place + 1):
        end += 1
    while end - place < _MOST_WORDS:
        if is_name(text, end):
            end += 1
            while end < len(text.words) and text.starts[end] == text.starts[end - 1]:
                end += 1  # the second part of a name such as Xi'an
        elif end > place and text.padded[end] in _PARTICLES and is_name(text, end + 1):
            end += 2
        else:
            break
    return end - place


def place_at(text: Text, first: int, end: int) -> Place:
    start = text.starts[first]
    if end == first + 1:
        word = text.words[first]
        name = text.original[start : start + len(word)]
        name = name if name.lower() == word else text.written(first)
        return Place(name, (word,), start, gazetteer().same(word))
    last = text.starts[end - 1] + len(text.written(end - 1)) if text.starts[end - 1] != text.starts[end - 2] else 0
    name = text.original[text.starts[first] : last] if last else text.written(first)
    words = tuple(text.words[first:end])
    return Place(name, words, text.starts[first], place_key(words))
