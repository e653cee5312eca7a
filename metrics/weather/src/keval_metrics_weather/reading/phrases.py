"""Phrases: which of a list of keywords a text says, as whole words, and which of those it denies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from keval_metrics_weather.reading.said import said
from keval_metrics_weather.reading.words import Text, read

__all__ = ["Hit", "affirmed", "denied", "find", "hedged", "roots"]

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
_DENYING = _NEGATORS | _DENIALS
_REACH = 8
_HEDGE_REACH = 4


Hit: TypeAlias = tuple[int, int, str]
"""The places of a keyword's first and last word, and the keyword; a plain tuple, as an answer has dozens."""


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


@lru_cache(maxsize=64)
def roots(word: str) -> tuple[str, ...]:
    """Return a word and what it may be an inflection of, for `find`: `museums` and `museum`, `hiking` and `hike`."""
    found = {word: None}
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            found[word.removesuffix(ending) + instead] = None
    return tuple(found)


@lru_cache(maxsize=256)
def _lexicon(
    keywords: tuple[str, ...],
) -> tuple[frozenset[str], Mapping[str, Sequence[tuple[str, int, Sequence[str]]]]]:
    """Return the words to look keywords up by, and for each the keywords, its place in them and all their words.

    A phrase is looked up by its longest word, which is the rarest as a rule: "mentioned" rather than "you".
    """
    entries: dict[str, list[tuple[str, int, Sequence[str]]]] = {}
    for keyword in keywords:
        words = read(keyword).words
        if len(words) == 1:
            for form in _forms(words[0]):
                entries.setdefault(form, []).append((keyword, 0, ()))
        elif words:
            rarest = max(words, key=len)
            entries.setdefault(rarest, []).append((keyword, words.index(rarest), words))
    return frozenset(entries), entries


def find(text: Text, keywords: tuple[str, ...]) -> list[Hit]:
    """Return every place where a text says one of the keywords, in the text's order.

    A keyword of one word is found in its inflections too; a phrase is found as it stands.
    """
    known, entries = _lexicon(keywords)
    hits: list[Hit] = []
    for word in text.said & known:
        for keyword, offset, phrase in entries[word]:
            for place in text.index[word]:
                if not phrase:
                    hits.append((place, place, keyword))
                elif text.words[max(place - offset, 0) : place - offset + len(phrase)] == phrase:
                    hits.append((place - offset, place - offset + len(phrase) - 1, keyword))
    hits.sort()
    return hits


@lru_cache(maxsize=64)
def affirmed(text: Text, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keywords that a text says without denying them, each once, in the text's order."""
    hits = find(text, keywords)
    return said(text, [hit for hit in hits if not denied(text, hit)]) if hits else ()


def denied(text: Text, hit: Hit) -> bool:
    """Say whether a keyword is negated: "no rain", "won't need an umbrella", "rain is not expected"."""
    if text.said.isdisjoint(_DENYING):
        return False  # most texts deny nothing at all, which their set of words tells at once
    first, last, _ = hit
    return _denied_before(text, first) or _denied_after(text, last)


def _denied_before(text: Text, first: int) -> bool:
    words = text.words
    comma = False
    absent = False
    for at in range(first - 1, max(first - _REACH, 0) - 1, -1):
        word = words[at]
        if word in _BREAKS:
            break
        if word == ",":
            between = words[at + 1 : first]
            if between and (len(between) > 2 or between[-1] not in _JOINING):
                break  # what follows the comma is no list such as "no snow, sleet or rain"
            comma = True
        elif word == "and" and words[at + 1] in _SUBJECTS:
            break
        elif word in _NEGATORS:
            following = words[at + 1]
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
    if text.said.isdisjoint(_HEDGES):
        return False
    first = hit[0]
    for at in range(first - 1, max(first - _HEDGE_REACH, 0) - 1, -1):
        word = text.words[at]
        if word in _HEDGES:
            return True
        if word in _BREAKS or word == ",":
            return False
    return False
