"""Cities: the places a text names, by how they are written and what stands before them, not from a list."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from keval_metrics_weather.openings import OPENINGS, after_opening
from keval_metrics_weather.words import Text, read, word_set

__all__ = ["City", "cities_asked", "cities_named", "find_names"]

_BEFORE_A_PLACE = frozenset({"in", "for", "at", "near", "to", "from", "around", "of", "visiting", "about"})
_CONTRASTING = frozenset({"while", "whereas", "but", "and", "than"})
_SAYING = frozenset({"is", "has", "will", "enjoys", "sees", "gets", "currently", "stays", "remains", "at", "only"})
_ANOTHER = frozenset({"and", "or", "vs", "versus"})
_PARTICLES = frozenset(
    {"de", "da", "do", "del", "di", "la", "le", "los", "las", "der", "den", "upon", "sur", "am", "el"}
)
_MOST_WORDS = 4

_TIMES = word_set(
    "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun january february march"
    " april may june july august september october november december today tomorrow tonight now yesterday weekend"
    " week day days morning afternoon evening night noon midnight spring summer autumn fall winter next last this"
    " currently right later soon christmas easter"
)
_FUNCTION_WORDS = word_set(
    "a an and any are as be been being but can could did do does for from had has have he hello her here hey hi"
    " his how i if in into is it its just let like me more most my near no not of ok okay on or our out over"
    " please same she should so some such tell than thank thanks that their them then there these they those to"
    " too under up us was we well were what when where whether which who why will with would yes you your show"
    " give compare need want planning visiting going also about around at between vs versus both good great"
)
_WEATHER_WORDS = word_set(
    "weather forecast temperature temperatures temp conditions rain snow sun sunny cloud cloudy clouds wind windy"
    " humid humidity hot cold warm cool celsius fahrenheit degrees umbrella jacket coat outdoor outdoors indoor"
    " indoors uv api openweather high low highs lows general english c f"
)
_NO_PLACE = _TIMES | _FUNCTION_WORDS | _WEATHER_WORDS
_NO_LOWER_CASE_PLACE = _NO_PLACE | word_set("the town city area place case advance detail short hours minutes")
_AFTER_A_LEADING_PLACE = _TIMES | _ANOTHER | word_set("weather forecast temperature conditions please") | {"?", ""}
_AFTER_A_LEADING_PLACE_AND_COMMA = _AFTER_A_LEADING_PLACE - _ANOTHER - {"?"}


class City(NamedTuple):
    """A place named at offset `start`; `words` are its name in lower case without accents, `name` as written."""

    name: str
    words: tuple[str, ...]
    start: int


@lru_cache(maxsize=64)
def cities_named(text: Text) -> tuple[City, ...]:
    """Return the capitalised names that follow a preposition of place: "in São Paulo", "for Paris and Rome".

    A name that is contrasted with another place counts too: "while Paris enjoys 30 °C".
    """
    found = []
    for word in text.said & _BEFORE_A_PLACE:
        for place in text.index[word]:
            at = place + 1
            while (city := _name(text, at)) is not None:
                found.append(city)
                at += len(city.words)
                if text.word_at(at) not in _ANOTHER:
                    break
                at += 1
    for word in text.said & _CONTRASTING:
        for place in text.index[word]:
            city = _name(text, place + 1)
            if city is not None and text.word_at(place + 1 + len(city.words)) in _SAYING:
                found.append(city)
    return _in_order(found)


@lru_cache(maxsize=64)
def cities_asked(text: Text) -> tuple[City, ...]:
    """Return the places a user's message names, in free order ("Helsinki weather?") or lower case too."""
    if text.original.isupper() or text.original.islower():
        return _lower_case(text)
    return cities_named(text) or _loose(text) or _lower_case(text)


def find_names(text: Text, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the offsets at which a text says each of the names that it does, whatever their case and accents."""
    wanted: dict[str, dict[int, dict[tuple[str, ...], str]]] = {}
    for name in names:
        words = tuple(read(name).words)
        if words and words[0] in text.index:
            wanted.setdefault(words[0], {}).setdefault(len(words), {}).setdefault(words, name)
    found: dict[str, list[int]] = {}
    for first, by_length in wanted.items():
        for length, known in by_length.items():
            for place in text.index[first]:
                said = known.get(tuple(text.words[place : place + length]))
                if said is not None:
                    found.setdefault(said, []).append(text.starts[place])
    return found


def _in_order(found: list[City]) -> tuple[City, ...]:
    return tuple(sorted(set(found), key=lambda city: city.start)) if len(found) > 1 else tuple(found)


def _is_name(text: Text, place: int) -> bool:
    word = text.word_at(place)
    if word[:1].isalpha() and word not in _NO_PLACE and text.capitalised(place):
        return len(word) > 1 or not word.isascii()  # a letter is none, as in Washington, D.C.
    return False


def _name(text: Text, place: int) -> City | None:
    """Return the capitalised name that begins at a place, particles within it included."""
    if place >= len(text.words) or not text.capitalised(place):
        return None
    end = place
    if text.words[place] == "the" and _is_name(text, place + 1):
        end += 1
    while end - place < _MOST_WORDS:
        if _is_name(text, end):
            end += 1
            while end < len(text.words) and text.starts[end] == text.starts[end - 1]:
                end += 1  # the second part of a name such as Xi'an
        elif end > place and text.word_at(end) in _PARTICLES and _is_name(text, end + 1):
            end += 2
        else:
            break
    return _city(text, place, end)


def _city(text: Text, place: int, end: int) -> City | None:
    if end == place:
        return None
    if end == place + 1:
        return City(text.written(place), (text.words[place],), text.starts[place])
    written = {text.starts[at]: text.written(at) for at in range(place, end)}
    name = " ".join(written.values())
    return City(name, tuple(text.words[place:end]), text.starts[place])


def _loose(text: Text) -> tuple[City, ...]:
    """Find names anywhere; a sentence's first word only when what follows makes it a place, and never an opening."""
    found = []
    at = 0
    while at < len(text.words):
        leads = at == 0 or text.words[at - 1] in (".", "!", "?", "\n")
        if leads and text.words[at] in OPENINGS:
            at += 1
            continue
        city = _name(text, at)
        if city is not None and (not leads or _leads_as_a_place(text, at, at + len(city.words))):
            found.append(city)
        at += len(city.words) if city is not None else 1
    return _in_order(found)


def _leads_as_a_place(text: Text, first: int, end: int) -> bool:
    """Say whether a name that begins a sentence is a place: "Oslo tomorrow", "Oslo, Norway", but not "Splendid, …"."""
    following = text.word_at(end)
    if following == ",":
        return text.word_at(end + 1) in _AFTER_A_LEADING_PLACE_AND_COMMA or _is_name(text, end + 1)
    if following == "." and end + 1 == len(text.words):
        return after_opening(text) == first  # a message that says no more: "Oslo."
    if following == "on":
        return text.word_at(end + 1) in _TIMES
    return following in _AFTER_A_LEADING_PLACE


def _lower_case(text: Text) -> tuple[City, ...]:
    """Find "weather in new york tomorrow": up to three words that are nothing else after a preposition."""
    found = []
    for word in ("in", "near", "for"):
        for place in text.index.get(word, ()):
            if word == "for" and text.word_at(place - 1) not in ("weather", "forecast", "temperature"):
                continue
            end = place + 1
            while end - place <= 3 and (w := text.word_at(end)).isalpha() and w not in _NO_LOWER_CASE_PLACE:
                end += 1
            city = _city(text, place + 1, end)
            if city is not None:
                found.append(city)
    return _in_order(found)
