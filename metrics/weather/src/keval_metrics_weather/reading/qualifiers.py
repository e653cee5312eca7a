"""Qualifiers: the kinds of temperatures, and the words right after one that tell its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from keval_metrics_weather.reading.words import Text

__all__ = ["Kind", "kind_after", "of_the_air"]


Kind: TypeAlias = Literal["temperature", "high", "low", "feels_like", "water", "dew_point", "usual", "record", "bound"]
"""A `bound` is none that it is said to have ("below 10 °C"); `usual` is what is normal for the season."""


_AFTER: Mapping[str, Kind] = {
    **dict.fromkeys(("high", "highs", "max", "maximum"), "high"),
    **dict.fromkeys(("low", "lows", "min", "minimum", "overnight"), "low"),
}


_BY: Mapping[tuple[str, str], Kind] = {
    ("by", "day"): "high",
    ("by", "night"): "low",
    ("at", "night"): "low",
    ("feels", "like"): "feels_like",
    ("wind", "chill"): "feels_like",
    ("heat", "index"): "feels_like",
    ("dew", "point"): "dew_point",
    ("is", "typical"): "usual",
    ("is", "normal"): "usual",
    ("on", "average"): "usual",
}


_AT_THE: Mapping[str, Kind] = {"warmest": "high", "hottest": "high", "coldest": "low", "coolest": "low"}


_GOES_ON = frozenset({"of", "is", "near", "around", "about", "pressure", ":", "will", "at"})


def kind_after(text: Text, last: int) -> Kind | None:
    """Return what the words right after a quantity say of it: "a 20 °C high", "26 °C max", "12 °C by night"."""
    at = last + 1
    if text.word_at(at) == "," and text.word_at(at + 1) == "overnight":
        return "low"
    while text.word_at(at) in ("(", "-", "with", "the") and at < last + 3:
        at += 1
    one, two, three = text.word_at(at), text.word_at(at + 1), text.word_at(at + 2)
    if one in _AFTER:
        return None if two in _GOES_ON or two[:1].isdigit() or text.word_at(at) == "\n" else _AFTER[one]
    if (one, two) in _BY:
        return None if three[:1].isdigit() or three in _GOES_ON else _BY[one, two]
    if one == "during" and two == "the" and three in ("day", "night"):
        return "high" if three == "day" else "low"
    if one == "at" and two in ("the", "its") and three in _AT_THE:
        return _AT_THE[three]
    return None


def of_the_air(kind: str) -> bool:
    """Say whether a kind states the air's own temperature, which can be held against the truth."""
    return kind in ("temperature", "high", "low")
