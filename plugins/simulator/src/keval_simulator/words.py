"""Words: their stems, identifiers and sentences, by which questions, tools and documents are compared."""

from __future__ import annotations

import re
from collections.abc import Collection


def lexicon(text: str) -> frozenset[str]:
    """Return the words of a text as a set; word lists read best as text."""
    return frozenset(text.split())


STOP = lexicon("""
    a about all also am an and any anyone are as ask at be been but by can could did do does doing for from get give
    had has have having hello her here hers hey hi him his how i if in into is it its just know let like me more my no
    not of off ok okay on one or our out over please really s she should so some tell than thank thanks that the their
    them then there these they this those to too up us want was we well were what when where which who why will with
    would yes you your
    """)

_COUNTING = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {word: value for value, word in enumerate(_COUNTING.split())}
_ORDER = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: value for value, word in enumerate(_ORDER.split())}

_SUFFIXES = (("ies", "y"), ("ings", ""), ("ing", ""), ("ers", "er"), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""))


def stem(word: str) -> str:
    """Cut a lower-case word's common English endings, roughly."""
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            word = word[: -len(suffix)] + replacement
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def split_identifier(name: str) -> list[str]:
    """Return the lower-case words of a name such as `get_userId` or `search-docs`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", spaced)]


_ALIKE = (
    "add plus sum total", "subtract minus difference less between diff", "mean average median deviation statistics",
    "root sqrt", "multiply times product", "divide quotient over", "convert exchange conversion",
    "find search look lookup query", "list show every all", "get read fetch show view", "delete remove",
    "create new make", "price cost expensive cheap", "count many number", "size big large",
    "highest largest maximum max statistics", "lowest smallest minimum min statistics",
    "date day when tomorrow monday tuesday wednesday thursday friday saturday sunday weekend week",
    "time clock hour when", "where place location city", "who person author", "length long duration",
    "content text say contain written", "age old", "height tall high", "weight heavy", "calculate compute evaluate",
)  # fmt: skip
"""Plain English words that stand for each other in the names of tools and fields."""


def alike(text: str) -> set[str]:
    """Return the stems of a text's words, and of the words that stand for them."""
    words = {stem(word) for word in re.findall(r"[^\W\d_]+", text.lower())}
    return stems(text).union(*(group for group in _GROUPS if group & words))


def stems(text: str) -> set[str]:
    """Return the stems of a text's content words."""
    return {stem(word) for word in re.findall(r"[^\W\d_]+", text.lower()) if word not in STOP and len(word) > 1}


_GROUPS = tuple({stem(word) for word in group.split()} for group in _ALIKE)


def shares_stem(word: str, words: Collection[str]) -> bool:
    """Tell whether a stem is among others, but for its ending: "encrypt" is in a text on encryption."""
    return word in words or any(_related(word, other) for other in words)


def _related(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    common = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return common >= 4 and common >= 0.7 * len(longer)


def sentences(text: str) -> list[str]:
    """Cut a text into sentences and lines."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]
