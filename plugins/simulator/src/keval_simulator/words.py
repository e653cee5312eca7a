"""Words: stems, concepts, numbers and sentences, by which questions, tools and documents are compared."""

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

_SUFFIXES = (("ies", "y"), ("ings", ""), ("ing", ""), ("ers", "er"), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""))

_CONCEPTS = {
    "weather": """
        weather temperature temp degree degrees celsius fahrenheit hot cold warm warmer warmest cool cooler colder
        chilly freezing mild rain rains raining rainy snow snowing snowy sun sunny sunshine cloud cloudy clouds wind
        windy storm storms humid humidity fog foggy mist drizzle thunderstorm umbrella jacket coat wear dress clothes
        pack outside outdoors outdoor picnic hike hiking jog jogging bike cycling beach climate heatwave forecast
        outlook
    """,
    "forecast": """
        forecast tomorrow tonight later weekend week weekly upcoming soon next coming monday tuesday wednesday
        thursday friday saturday sunday outlook
    """,
    "current": "current currently now moment",
    "preference": "preference preferences prefer prefers favourite favorite likes dislikes dislike",
    "search": "search find look lookup documentation docs document documents manual guide article articles",
    "add": "add plus sum total addition",
    "subtract": "subtract minus difference less",
    "multiply": "multiply times product multiplied",
    "divide": "divide divided quotient ratio",
    "currency": "currency currencies dollar dollars euro euros pound pounds yen usd eur gbp jpy chf exchange",
    "convert": "convert conversion exchange",
}


def stem(word: str) -> str:
    """Cut a lower-case word's common English endings, roughly."""
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            return word[: -len(suffix)] + replacement
    return word


_MEANS: dict[str, set[str]] = {}
for _concept, _words in _CONCEPTS.items():
    for _word in _words.split():
        _MEANS.setdefault(stem(_word), set()).add(_concept)


def split_identifier(name: str) -> list[str]:
    """Return the lower-case words of a name such as `get_userId` or `search-docs`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", spaced)]


def stems(text: str) -> set[str]:
    """Return the stems of a text's content words."""
    return {stem(word) for word in re.findall(r"[^\W\d_]+", text.lower()) if word not in STOP and len(word) > 1}


def concepts(text: str) -> set[str]:
    """Return a text's stems and the concepts they stand for."""
    found = stems(text)
    return found.union(*(_MEANS.get(word, ()) for word in found))


def shares_stem(word: str, words: Collection[str]) -> bool:
    """Tell whether a stem is among others, but for its ending: "encrypt" is in a text on encryption."""
    return word in words or any(_related(word, other) for other in words)


def _related(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    common = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return common >= 4 and common >= 0.7 * len(longer)


def key_words(text: str, limit: int = 8) -> str:
    """Return a text's content words in their order, as one would type them into a search box."""
    words = [word for word in re.findall(r"[^\W_][\w'-]*", text) if word.lower() not in STOP]
    return " ".join(words[:limit])


def numbers(text: str) -> list[float]:
    """Return the numbers in a text, in order, whether in digits or in words up to twelve."""
    found = re.findall(r"(?<![\w.])-?\d+(?:[.,]\d+)?(?![\w])|\b(?:" + "|".join(NUMBER_WORDS) + r")\b", text.lower())
    return [float(NUMBER_WORDS[each]) if each in NUMBER_WORDS else float(each.replace(",", ".")) for each in found]


def sentences(text: str) -> list[str]:
    """Cut a text into sentences and lines."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]
