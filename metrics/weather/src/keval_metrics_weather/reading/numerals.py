"""Numerals: numbers written in words."""

from __future__ import annotations

from keval_metrics_weather.reading.words import Text

__all__ = ["band_at", "numeral_before"]

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMERALS = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}


_SIGNS = ("minus", "negative")
_LARGER = frozenset({"hundred", "thousand", "point"})


def numeral_before(text: Text, place: int) -> tuple[float, int] | None:
    """Return the number in words that ends before a place, and the place of its first word.

    It is read up to "nine hundred and ninety-nine point nine", and not at all if it goes on before that.
    """
    number = _whole_before(text, place)
    if number is None:
        return None
    value, at = float(number[0]), number[1]
    if text.word_at(at - 1) == "point":
        whole = _whole_before(text, at - 1)
        if whole is None or value > 9:
            return None
        value, at = whole[0] + value / 10, whole[1]
    before = text.word_at(at - 1)
    goes_on = text.word_at(at - 2) if before == "and" else before
    if before in _NUMERALS or goes_on in _LARGER:
        return None
    return (-value, at - 1) if before in _SIGNS else (value, at)


def _whole_before(text: Text, place: int) -> tuple[int, int] | None:
    at, value = place, 0
    if text.word_at(at - 1) in _NUMERALS:
        at -= 1
        value = _NUMERALS[text.words[at]]
        if value < 10 and text.word_at(at - 1) in _TENS:
            at -= 1
            value += _NUMERALS[text.words[at]]
    hundred = at - 2 if at < place and text.word_at(at - 1) == "and" else at - 1
    if text.word_at(hundred) != "hundred":
        return (value, at) if at < place else None
    hundreds = 1 if text.word_at(hundred - 1) == "a" else _NUMERALS.get(text.word_at(hundred - 1), 0)
    return (100 * hundreds + value, hundred - 1) if 0 < hundreds < 10 else None


_TENS_OF_BANDS = {"teens": 10, "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60} | {
    "seventies": 70,
    "eighties": 80,
}
_PARTS = {"low": (0, 3), "lower": (0, 3), "mid": (4, 6), "middle": (4, 6), "high": (7, 9), "upper": (7, 9)}


def band_at(text: Text, place: int) -> tuple[float, float, int]:
    """Return the range that "mid-30s" or "high teens" means, and the place of its first word."""
    word = text.words[place]
    tens = _TENS_OF_BANDS.get(word) or int(word[:-1])
    parts = [_PARTS[part] for at in range(max(place - 3, 0), place) if (part := text.words[at]) in _PARTS]
    first = place
    while first > 0 and place - first < 3 and (text.words[first - 1] in _PARTS or text.words[first - 1] == "to"):
        first -= 1
    low, high = (min(a for a, _ in parts), max(b for _, b in parts)) if parts and first < place else (0, 9)
    least = 3 if word == "teens" else 0
    sign = -1.0 if text.word_at(first - 1) in _SIGNS else 1.0
    ends = sorted((sign * (tens + max(low, least)), sign * (tens + max(high, least))))
    return ends[0], ends[1], first
