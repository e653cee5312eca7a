"""Bare numbers: which numbers without a unit are temperatures, by the word before them."""

from __future__ import annotations

import re
from bisect import bisect_left

from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["NAMING", "is_day_and_night", "is_named", "word_follows"]


_AN_INDEX = re.compile(r"\b(?:uv|aqi|air quality|pollen)\b(?:(?! (?:and|with) )[^.,;\n|(]){0,32}$")


_INDICES = frozenset({"uv", "aqi", "quality", "pollen"})


NAMING = word_set(
    "temperature temperatures temp temps high highs low lows max maximum min minimum feels feel feeling chill index"
    " thermometer maxi mini hi lo"
)


_WEEKDAYS = word_set(
    "mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday"
)


_LINKING = word_set(
    "of is was are be at will around about approximately near nearly currently between from reaching stands only"
    " just roughly range ranging minus negative the a an to it has as low high more like closer with : - – of-around"
    " sits hovering now expected been sitting today tomorrow"
)


_MOST_LINKS = 6


def word_follows(plain: str, end: int) -> bool:
    """Say whether a whole word that is no unit stands after a number: "88 and", "0 in"."""
    return _NO_UNIT.match(plain, end) is not None


_NO_UNIT = re.compile(
    r" (?:and|with|in|on|at|by|for|but|or|then|right|now|today|tonight|tomorrow|as|so|under|overnight|the|to|while|this"
    r"|out|outside|there|here|near|around|during|after|before|once|though|even|if|is|was|when|followed|dropping|lo|low|hi|high|max|min)\b"
)


def is_named(text: Text, start: int) -> bool:
    """Say whether a word such as "high" makes a number a temperature, unless it is an index: "UV is high at 7"."""
    place = bisect_left(text.starts, start)
    for at in range(place - 1, max(place - 2 - _MOST_LINKS, -1), -1):
        word = text.words[at]
        if word in NAMING and (word != "index" or text.word_at(at - 1) == "heat"):
            begin = max(start - 48, 0)
            return text.said.isdisjoint(_INDICES) or not _AN_INDEX.search(text.plain, begin, start)
        if word not in _LINKING:
            return False
    return False


def is_day_and_night(text: Text, start: int) -> bool:
    """Say whether a pair such as "Mon 17/24" in a list of degrees is a day's span."""
    before = text.word_at(bisect_left(text.starts, start) - 1)
    return (before in _WEEKDAYS or before.isdecimal()) and "°" in text.plain and not text.said.isdisjoint(_WEEKDAYS)
