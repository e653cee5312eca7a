"""Phrases: which of a list of keywords a text says, as whole words, and which of those it denies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import attrs

from keval_metrics_weather.words import Text, read

__all__ = ["Hit", "affirmed", "denied", "find", "hedged"]

_SENTENCE_ENDS = frozenset({".", "!", "?", ";", "\n", "|", ":", "(", ")", "—", "-", "–"})
_BREAKS = _SENTENCE_ENDS | {"but", "however", "though", "although", "because", "since", "so", "then", "yet"}
_NEGATORS = frozenset(
    {"no", "not", "never", "without", "neither", "nor", "zero", "hardly", "unlikely", "leave", "skip"}
)
_LISTING = frozenset({"no", "without", "neither", "nor"})
_AFFIRMING_AFTER_NOT = frozenset({"forget", "hesitate", "only", "just", "miss", "doubt"})
_SUBJECTS = frozenset({"you", "i", "we", "it", "there", "they", "the", "bring", "take", "wear", "expect"})
_JOINING = frozenset({"and", "or", "nor"})
_HEDGES = frozenset(
    {"if", "unless", "chance", "chances", "possibility", "probability", "risk", "might", "may", "could", "can", "case"}
    | {"possible", "possibly", "potential", "maybe", "perhaps", "whether"}
)
_LINKS = frozenset({"is", "are", "will", "be", "looks", "seems", "has", "have", "currently", "today", "not", ":"})
_DENIALS = frozenset({"unlikely", "unnecessary", "none", "free", "stopped", "ended"})
_DENIED_AFTER_NOT = frozenset({"expected", "likely", "forecast", "forecasted", "needed", "necessary", "required"})
_REACH = 8
_HEDGE_REACH = 4


@attrs.frozen
class Hit:
    """A keyword at a place: `first` and `last` number its words, `start` is its offset."""

    keyword: str
    first: int
    last: int
    start: int


def _forms(word: str) -> set[str]:
    """Return a word with its regular inflections: `recommend` with `recommends`, `recommending`, `recommendation`."""
    forms = {word, word + "s"}
    if len(word) < 4 or not word.isascii():
        return forms
    stem = word[:-1] if word.endswith("e") else word
    forms |= {stem + ending for ending in ("es", "ed", "ing", "ion", "ions", "ation", "ations")}
    if word.endswith("y"):
        forms |= {word[:-1] + "ies", word[:-1] + "ied"}
    return forms


@lru_cache(maxsize=256)
def _lexicon(keywords: tuple[str, ...]) -> tuple[frozenset[str], Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]]:
    """Return the first words of keywords, and by first word the keywords and the words that must follow."""
    entries: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for keyword in keywords:
        words = tuple(read(keyword).words)
        if len(words) == 1:
            for form in _forms(words[0]):
                entries.setdefault(form, []).append((keyword, ()))
        elif words:
            entries.setdefault(words[0], []).append((keyword, words[1:]))
    return frozenset(entries), {first: tuple(found) for first, found in entries.items()}


def find(text: Text, keywords: tuple[str, ...]) -> list[Hit]:
    """Return every place where a text says one of the keywords, in the text's order.

    A keyword of one word is found in its inflections too; a phrase is found as it stands.
    """
    firsts, lexicon = _lexicon(keywords)
    hits = []
    for word in text.said & firsts:
        for keyword, rest in lexicon[word]:
            for place in text.index[word]:
                last = place + len(rest)
                if not rest or tuple(text.words[place + 1 : last + 1]) == rest:
                    hits.append(Hit(keyword, place, last, text.starts[place]))
    if len(hits) > 1:
        hits.sort(key=lambda hit: (hit.first, hit.last))
    return hits


def affirmed(text: Text, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keywords that a text says without denying them, each once, in the text's order."""
    return tuple(dict.fromkeys(hit.keyword for hit in find(text, keywords) if not denied(text, hit)))


def _before(text: Text, place: int, reach: int, breaks: frozenset[str]) -> Iterator[int]:
    """Yield the places before one, nearest first, up to a break."""
    for at in range(place - 1, max(place - reach, 0) - 1, -1):
        if text.words[at] in breaks:
            return
        yield at


def denied(text: Text, hit: Hit) -> bool:
    """Say whether a keyword is negated: "no rain", "won't need an umbrella", "rain is not expected"."""
    return _denied_before(text, hit.first) or _denied_after(text, hit.last)


def _denied_before(text: Text, first: int) -> bool:
    comma = False
    absent = False
    for at in _before(text, first, _REACH, _BREAKS):
        word = text.words[at]
        if word == ",":
            between = text.words[at + 1 : first]
            if between and (len(between) > 2 or between[-1] not in _JOINING):
                break  # what follows the comma is no list such as "no snow, sleet or rain"
            comma = True
        elif word == "and" and text.words[at + 1] in _SUBJECTS:
            break
        elif word in _NEGATORS:
            following = text.words[at + 1]
            if following in _AFFIRMING_AFTER_NOT:
                return False
            if following == "," or (comma and word not in _LISTING):
                break
            if absent:
                return False  # "don't go out without an umbrella" asks for one
            if word != "without":
                return True
            absent = True
    return absent


def _denied_after(text: Text, last: int) -> bool:
    negated = False
    for at in range(last + 1, min(last + 4, len(text.words))):
        word = text.words[at]
        if word in _DENIALS:
            return True
        if negated:
            return word in _DENIED_AFTER_NOT
        if word not in _LINKS:
            return False
        negated = word == "not"
    return False


def hedged(text: Text, hit: Hit) -> bool:
    """Say whether a keyword is only held possible: "if it rains", "a 20 % chance of rain"."""
    return any(text.words[at] in _HEDGES for at in _before(text, hit.first, _HEDGE_REACH, _BREAKS | {","}))
