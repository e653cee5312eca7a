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


def numeral_before(text: Text, place: int) -> tuple[float, int] | None:
    """Return the number in words that ends before a place, and the place of its first word."""
    at = place - 1
    if text.word_at(at) not in _NUMERALS:
        return None
    value = _NUMERALS[text.words[at]]
    if value < 10 and text.word_at(at - 1) in _TENS:
        at -= 1
        value += _NUMERALS[text.words[at]]
    if text.word_at(at - 1) in ("minus", "negative"):
        return -float(value), at - 1
    return float(value), at
