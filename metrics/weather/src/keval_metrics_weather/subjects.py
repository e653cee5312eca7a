"""Subjects: tells a question about the weather from one about a book, a team or a thing that is named after it."""

from __future__ import annotations

from keval_metrics_weather.reading.gazetteer import gazetteer, is_name
from keval_metrics_weather.reading.words import Hit, Text, vocabulary, word_set

_WORKS = frozenset(vocabulary("works"))
"""Words for books, songs, films and who made them."""
_LANGUAGE = word_set("meaning definition idiom spell spelled translate translation synonym rhyme rhymes pronounce")
_COMES_ABOUT = word_set("form forms work works happen occur arise formed made")
_ABOUT_WEATHER = word_set("weather forecast temperature rain raining snow snowing sunny degrees")
_KNOWING = word_set("knows know can could wants needs else is")
_NAMED_AFTER = frozenset(vocabulary("named after"))
"""Words of the weather, each before what makes it mean nothing of the weather."""
_NAMED_SO = frozenset(vocabulary("named so"))
"""Words of the weather, each behind what makes it mean nothing of the weather."""
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
    if is_of_works(text) or f"{keyword} {following}" in _NAMED_AFTER:
        return False
    if f"{before} {keyword}" in _NAMED_SO:
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
