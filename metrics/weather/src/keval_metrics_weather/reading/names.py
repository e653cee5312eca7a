"""Names: places as they are named, and what belongs to a name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from keval_metrics_weather.reading.gazetteer import gazetteer
from keval_metrics_weather.reading.lexicon import NO_NAMES
from keval_metrics_weather.reading.words import Text, word_set

__all__ = [
    "ANOTHER",
    "BEFORE_A_PLACE",
    "CONTRASTING",
    "LOCATING",
    "SAYING",
    "Place",
    "after_regions",
    "is_code",
    "is_name",
    "name_at",
    "place_at",
    "place_key",
]


BEFORE_A_PLACE = frozenset({"in", "for", "at", "near", "to", "from", "around", "of", "visiting", "about", "over"})


LOCATING = frozenset({"in", "near", "at", "around", "visiting"})


CONTRASTING = frozenset({"while", "whereas", "but", "and", "than", "versus", "vs", "or", "like", "as", "with"})


SAYING = word_set(
    "is has will enjoys sees gets currently stays remains at only sits reaches hits can looks should had was : ( ,"
    " | – today tomorrow now tonight"
)


ANOTHER = frozenset({"and", "or", "vs", "versus", ","})


_PARTICLES = frozenset(
    {"de", "da", "do", "del", "di", "la", "le", "los", "las", "der", "den", "upon", "sur", "am", "el", "i"}
)


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
    start = text.starts[at]
    return len(text.words[at]) == 2 and not text.caseless and text.original[start : start + 2].isupper()


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
        at = after + 1 if text.word_at(after) == ")" else after
    return at


def _is_region(text: Text, at: int, apart: bool) -> bool:
    """Say whether a word that may be a region's is one: short ones only in capitals or after a comma."""
    return len(text.words[at]) > 3 or apart or text.capitalised(at) or text.caseless


def is_name(text: Text, place: int) -> bool:
    word = text.word_at(place)
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
        elif end > place and text.word_at(end) in _PARTICLES and is_name(text, end + 1):
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
