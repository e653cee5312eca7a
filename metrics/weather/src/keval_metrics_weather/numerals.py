"""Numerals: numbers written in words."""

from __future__ import annotations

from keval_metrics_weather.words import Text

__all__ = ["numeral_before"]

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
