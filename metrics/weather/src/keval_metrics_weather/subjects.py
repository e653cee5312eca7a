"""Subjects: tells a question about the weather from one about a book, a team or a thing that is named after it."""

from __future__ import annotations

from collections.abc import Mapping

from keval_metrics_weather.reading.gazetteer import gazetteer, is_name
from keval_metrics_weather.reading.words import Hit, Text, word_set

_WORKS = word_set(
    "wrote written writes sang sung sings directed directs painted composed recorded released starred stars starring"
    " acted played plays invented published filmed produced author authors novel novels lyrics album singer band plot"
    " episode sequel actor actress director painter composer title book books movie film films song songs series poem"
)
"""Words for books, songs, films and who made them."""
_LANGUAGE = word_set("meaning definition idiom spell spelled translate translation synonym rhyme rhymes pronounce")
_COMES_ABOUT = word_set("form forms work works happen occur arise formed made")
_ABOUT_WEATHER = word_set("weather forecast temperature rain raining snow snowing sunny degrees")
_KNOWING = word_set("knows know can could wants needs else is")
_NAMED_AFTER: Mapping[str, frozenset[str]] = {
    "cold": word_set("war wars call calls case cases brew fusion turkey feet cuts storage medicine remedy"),
    "hot": word_set("dog dogs sauce pot wheels topic topics take chocolate key springs"),
    "cloud": word_set("computing storage service services atlas provider native drive software backup"),
    "ice": word_set("cream hockey age cube cubes tea skating"),
    "clear": word_set("my your the his her our browser cache cookies history explanation definition"),
    "dry": word_set("cleaning cleaner clean wall run"),
    "sun": word_set("microsystems tzu newspaper"),
    "heat": word_set("pump pumps transfer engine"),
    "wind": word_set("turbine turbines instrument instruments farm up"),
    "cool": word_set("fact facts name names app apps story job"),
    "storm": word_set("trooper troopers drain"),
    "snow": word_set("white leopard"),
    "warm": word_set("regards welcome"),
}
"""What a word of the weather means nothing of the weather before."""
_NAMED_SO: Mapping[str, frozenset[str]] = {
    "heat": word_set("miami specific latent"),
    "cold": word_set("a common catch caught"),
    "weather": word_set("the"),
    "snow": word_set("jon"),
    "storm": word_set("brain perfect"),
    "thunder": word_set("city tropic"),
    "temperature": word_set("boiling melting body oven colour color"),
}
"""What a word of the weather means nothing of the weather after."""
_STORMS = frozenset({"storm", "thunderstorm"})
_ENDS = frozenset({"", "?", ".", "!", ",", "\n", "and", "or"})


def is_of_works(text: Text) -> bool:
    """Say whether a question is about people and what they made ("Who wrote Snow Crash?"), or about words or causes."""
    for at in text.index.get("who", ()):
        if text.padded[at + 1] not in _KNOWING:
            return True
    explained = text.words[:1] == ["how"] and not _COMES_ABOUT.isdisjoint(text.words[-2:])
    if explained or not text.said.isdisjoint(_LANGUAGE):
        return True
    weather = any(text.caseless or at == 0 or not text.capitalised(at) for at in text.places_of(_ABOUT_WEATHER))
    return not text.said.isdisjoint(_WORKS) and not weather


def is_weather(text: Text, hit: Hit) -> bool:
    """Say whether a word of the weather means the weather, rather than part of a name or of another thing."""
    first, last, keyword = hit
    before, following = text.padded[first - 1], text.padded[last + 1]
    if is_of_works(text) or following in _NAMED_AFTER.get(keyword, ()):
        return False
    if before in _NAMED_SO.get(keyword, ()):
        if keyword == "cold":  # "a cold" is an illness, "a cold day" is none
            return following not in _ENDS
        return keyword == "weather" and text.padded[first - 2] != "under"
    return not _in_a_title(text, first, last)


def _in_a_title(text: Text, first: int, last: int) -> bool:
    """Say whether a word stands in a name of several words ("Snow Crash"), which a storm's own name is none of."""
    if text.caseless or first == 0 or not text.capitalised(first) or _all_capitalised(text):
        return False
    if text.words[first] in ("weather", "forecast") or (text.words[first] in _STORMS and is_name(text, last + 1)):
        return False
    beside = [at for at in (first - 1, last + 1) if 0 < at < len(text.words) and is_name(text, at)]
    return any(text.words[at] not in gazetteer().names for at in beside)


def _all_capitalised(text: Text) -> bool:
    return all(text.capitalised(at) for at, word in enumerate(text.words) if len(word) > 3)
