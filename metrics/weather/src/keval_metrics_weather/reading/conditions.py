"""Conditions: which of OpenWeather's weather groups a text speaks of, and how surely."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from keval_metrics_weather.reading.words import NEGATORS, Text, any_of, before, denied, find, hedged, read, word_set

Group: TypeAlias = Literal["rain", "clear", "clouds", "snow", "mist", "thunderstorm"]

_VOCABULARY: tuple[tuple[Group, tuple[str, ...]], ...] = (
    ("rain", ("rain", "rainy", "drizzle", "drizzly", "shower", "showery", "downpour")),
    ("clear", ("clear", "sunny", "sunshine", "sun", "cloudless")),
    ("clouds", ("cloud", "cloudy", "overcast")),
    ("snow", ("snow", "snowy", "snowfall", "sleet", "blizzard", "flurry")),
    ("mist", ("mist", "misty", "fog", "foggy", "haze", "hazy", "smoke", "smoky", "dust", "dusty")),
    ("thunderstorm", ("thunderstorm", "thunder", "lightning", "storm", "stormy", "squall", "tornado")),
)
_OPENWEATHER: dict[str, Group] = {"sand": "mist", "ash": "mist"}
"""OpenWeather's main groups that are no word for the weather in an answer (https://openweathermap.org/weather-conditions)."""

_NOT_WEATHER_BEFORE: dict[str, frozenset[str]] = {
    "rain": word_set("jacket jackets coat coats boots gear poncho hat shoes wear radar shell gauge"),
    "snow": word_set("boots gear chains shoes tires tyres"),
    "sun": word_set("protection hat cream screen glasses rises sets rise set"),
    "clear": word_set("that about idea picture answer"),
}
_SKY: frozenset[Group] = frozenset({"clear", "clouds"})
_BARELY = frozenset({"partly", "partially", "mostly", "mainly", "few", "scattered", "some", "intermittently"})
_WORD = r"(?:[^.!?;,:\s]\S{0,64} )"
_FEELING = (
    r"(?:hates?|dislike|disliking|disliked|loves?|prefers?|preference|enjoys?|mind|avoid|avoiding|fan|aversion"
    r"|sensitive|sensitivity)"
)
# "since you dislike rain", "you don't like rain"; "you like that it rains"
_LIKED = re.compile(
    rf" (?:(?:you|your|i|my|we|not|who|mentioned|a) (?:\S{{1,64}} ){{0,3}}?{_FEELING}|(?:you|i|not|would) like)"
    rf" {_WORD}{{0,4}}$"
)
_DENIES = re.compile(rf" {any_of(NEGATORS)} (?P<what>(?:(?!{any_of(NEGATORS)} ){_WORD}){{0,7}})$")
_ENDLESS = re.compile(
    r" (?:stop|stopped|stopping|ease|eased|easing|done|finished|let|mind|ignore|underestimate|end|stranger|fooled) "
)
_OF_THE_WEATHER = re.compile(
    r" (?:expect|expecting|expected|see|seeing|have|having|get|getting|likely|looking|forecast|way) (?!to )"
)
_CIRCUMSTANCE = re.compile(
    r"\S (?:in|under|with|during|through|amid|on|beneath|below|despite|given|while|when|as|thanks|due) "
    r"|\S and (?:\S{1,64} ){0,4}(?:is|are|will) | for (?:the|this|such|these) "
)


class Condition(NamedTuple):
    """A mention of the weather from offset `start` to `end`: asserted, only held possible, or denied.

    `word` is the keyword, of which the text may have an inflection.
    """

    groups: frozenset[Group]
    stance: Literal["asserted", "possible", "denied"]
    start: int
    end: int
    word: str


@lru_cache(maxsize=256)
def groups_of(openweather: str) -> frozenset[Group]:
    """Return the groups of one of OpenWeather's main conditions or descriptions; an unknown name has none."""
    text = read(openweather)
    spoken = {group for condition in conditions(text) for group in condition.groups}
    return frozenset(spoken | {_OPENWEATHER[word] for word in text.words if word in _OPENWEATHER})


@lru_cache(maxsize=64)
def conditions(text: Text) -> tuple[Condition, ...]:
    """Return every mention of the weather in a text, in its order; likes and questions are no mention."""
    keywords, groups_by_keyword = _keywords()
    found = []
    for hit in find(text, keywords):
        first, last, keyword = hit
        if keyword in _NOT_WEATHER_BEFORE and text.padded[last + 1] in _NOT_WEATHER_BEFORE[keyword]:
            continue
        if keyword == "clear" and text.words[max(first - 2, 0) : first] == ["to", "be"]:
            continue
        if "whether" in text.words[max(first - 3, 0) : first] or _LIKED.search(before(text, first, 9)):
            continue
        stance: Literal["asserted", "possible", "denied"] = "asserted"
        if denied(text, hit) and not _is_circumstance(text, first):
            stance = "denied"
        elif hedged(text, hit):
            stance = "possible"
        for groups in groups_by_keyword[keyword]:
            barely = not groups.isdisjoint(_SKY) and text.padded[first - 1] in _BARELY
            found.append(Condition(_SKY if barely else groups, stance, text.starts[first], text.ends[last], keyword))
    return tuple(found)


@cache
def _keywords() -> tuple[tuple[str, ...], Mapping[str, Sequence[frozenset[Group]]]]:
    """Return all keywords, and for each the groups that list it, as sets of one."""
    groups: dict[str, list[frozenset[Group]]] = {}
    for group, words in _VOCABULARY:
        for word in words:
            groups.setdefault(word, []).append(frozenset({group}))
    return tuple(groups), groups


def _is_circumstance(text: Text, first: int) -> bool:
    """Say whether something else is denied than the weather: "you don't need a coat under clear skies".

    So it is after a preposition that the denied act came before, and of what does not end ("hasn't stopped raining").
    """
    denies = _DENIES.search(before(text, first, 8))
    if denies is None:
        return False
    what = f" {denies['what']}"
    return bool(_ENDLESS.search(what) or (_CIRCUMSTANCE.search(what) and not _OF_THE_WEATHER.search(what)))
