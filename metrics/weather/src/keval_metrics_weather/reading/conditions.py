"""Conditions: which of OpenWeather's weather groups a text speaks of, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from keval_metrics_weather.reading.words import NEGATORS, Text, denied, find, hedged, read, word_set

Group: TypeAlias = Literal["rain", "clear", "clouds", "snow", "mist", "thunderstorm"]
Vocabulary: TypeAlias = tuple[tuple[Group, tuple[str, ...]], ...]

VOCABULARY: Vocabulary = (
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
_FEELINGS = frozenset(
    {"hate", "hates", "dislike", "disliking", "disliked", "love", "loves", "prefer", "prefers", "preference", "enjoy"}
    | {"enjoys", "mind", "avoid", "avoiding", "fan", "aversion", "sensitive", "sensitivity"}
)
_LIKING = _FEELINGS | {"like"}
_CIRCUMSTANCES = word_set("in under with during through amid on beneath below despite given while when as thanks due")
_OF_THE_WEATHER = word_set("expect expecting expected see seeing have having get getting likely looking forecast way")
_NOT_ENDING = word_set(
    "stop stopped stopping ease eased easing done finished let mind ignore underestimate end stranger fooled"
)
_CLAUSE_ENDS = frozenset({".", "!", "?", ";", "\n", ",", ":"})
_VERBS = frozenset({"is", "are", "will"})
_MOST_BEFORE = 8
_LIKERS = frozenset({"you", "your", "i", "my", "we", "not", "who", "mentioned", "a"})


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


def conditions(text: Text, vocabulary: Vocabulary = VOCABULARY) -> tuple[Condition, ...]:
    """Return every mention of the weather in a text, in its order; likes and questions are no mention."""
    return _conditions(text, vocabulary)


@lru_cache(maxsize=64)
def _conditions(text: Text, vocabulary: Vocabulary) -> tuple[Condition, ...]:
    keywords, groups_by_keyword = _keywords(vocabulary)
    found = []
    for hit in find(text, keywords):
        first, last, keyword = hit
        if keyword in _NOT_WEATHER_BEFORE and text.padded[last + 1] in _NOT_WEATHER_BEFORE[keyword]:
            continue
        if keyword == "clear" and text.words[max(first - 2, 0) : first] == ["to", "be"]:
            continue
        if _liked(text, first) or "whether" in text.words[max(first - 3, 0) : first]:
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


@lru_cache(maxsize=16)
def _keywords(vocabulary: Vocabulary) -> tuple[tuple[str, ...], Mapping[str, Sequence[frozenset[Group]]]]:
    """Return all keywords of a vocabulary, and for each the groups that list it, as sets of one."""
    groups: dict[str, list[frozenset[Group]]] = {}
    for group, words in vocabulary:
        for word in words:
            groups.setdefault(word, []).append(frozenset({group}))
    return tuple(groups), groups


def _is_circumstance(text: Text, first: int) -> bool:
    """Say whether something else is denied than the weather: "you don't need a coat under clear skies".

    So it is after a preposition that the denied act came before, and of what does not end ("hasn't stopped raining").
    """
    around = False
    for at in range(first - 1, max(first - _MOST_BEFORE, 0) - 1, -1):
        word = text.words[at]
        if word in _CLAUSE_ENDS:
            return False
        if word in NEGATORS:
            denies = text.words[at + 1 : first + 1]
            of_the_weather = any(one in _OF_THE_WEATHER and two != "to" for one, two in pairwise(denies))
            return not _NOT_ENDING.isdisjoint(denies) or (around and not of_the_weather)
        following = text.words[at + 1 : first]
        clause = word == "and" and not _VERBS.isdisjoint(following)
        purpose = word == "for" and following[:1] in (["the"], ["this"], ["such"], ["these"])
        circumstance = word in _CIRCUMSTANCES and text.words[at - 1] not in NEGATORS
        around = around or clause or purpose or circumstance
    return False


def _liked(text: Text, place: int) -> bool:
    """Say whether the words before a place are about liking: "since you dislike rain", "you don't like rain"."""
    if text.said.isdisjoint(_LIKING):
        return False
    for at in range(place - 1, max(place - 5, 0) - 1, -1):
        word = text.words[at]
        if word in (".", "!", "?", ";", "\n", ","):
            return False
        if word in _FEELINGS and not _LIKERS.isdisjoint(text.words[max(at - 4, 0) : at]):
            return True
        if word == "like" and text.padded[at - 1] in ("you", "i", "not", "would"):
            return True
    return False
