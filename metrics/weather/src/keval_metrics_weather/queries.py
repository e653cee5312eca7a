"""Queries: what a user's message asks for by itself, and what it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import attrs

from keval import Message
from keval_metrics_weather.mentions import cities_mentioned
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.reading.asked_places import places_asked
from keval_metrics_weather.reading.names import Place
from keval_metrics_weather.reading.openings import OPENINGS, after_opening
from keval_metrics_weather.reading.phrases import Hit, find
from keval_metrics_weather.reading.times import NOW, TODAY, TONIGHT, times, times_of_day
from keval_metrics_weather.reading.words import Text, read, word_set
from keval_metrics_weather.wording import ITEMS

__all__ = ["NO_LOCATION", "NO_TIME", "SEVERAL_PLACES", "Query", "gaps_left", "query", "wants_forecast"]

NO_LOCATION = "no location"
NO_TIME = "no time"
SEVERAL_PLACES = "several places of that name"
_VAGUE_GAP = "vague"
_UNCLEAR = "unclear intent"

_WEATHER = (
    "weather", "temperature", "temp", "forecast", "outlook", "rain", "rainy", "snow", "snowy", "sun", "sunny",
    "cloud", "cloudy", "wind", "windy", "humid", "humidity", "hot", "cold", "warm", "cool", "chilly", "freezing",
    "storm", "thunderstorm", "fog", "foggy", "degree", "celsius", "fahrenheit", "climate", "drizzle", "overcast",
    "mist", "haze", "heat", "ice", "icy", "dry", "wet", "clear",
    "nice out", "outside", "suitable", "out there",
    "muggy", "sunset", "uv",
)  # fmt: skip
_ADVICE = (
    "should i", "should we", "recommend", "suggest", "advice", "advise", "umbrella", "jacket", "coat", "wear", "pack",
    "bring", "dress", "what to do", "activity", "good day", "good idea", "good time", "do i need", "can i go",
    "can i do", "could i do", "plan", "what to put on", "will i need", "packing", "which jacket",
)  # fmt: skip
_FUTURE = ("forecast", "will it", "going to", "later")
_FUTURE_WITHOUT_A_DAY = ("will it", "will there", "will i", "will we", "going to", "later", "what will", "how will")
_TRAVELLING = ("trip", "holiday", "vacation", "when we", "when i", "pack", "packing", "wedding", "flight")
_SOON = ("soon", "shortly", "hour", "minutes", "right away")
_FOLLOW_UPS = (["and"], ["what", "about"], ["how", "about"], ["same"])
_POINTING_BACK = (["then"], ["that", "day"], ["those", "days"])
_BEFORE_AN_EMPTY_IT = frozenset({"is", "was", "will", "does", "be"})
_MOST_AROUND_A_PLACE = 3
_MOST_AROUND_A_TIME = 3
_ASKING = frozenset({"how", "what", "is", "are", "was", "will", "compare"})
_VAGUE = ("something", "stuff", "whatever", "some info", "things", "that place", "over there")
_NO_REQUEST = ("joke", "poem", "song", "story", "fun fact", "riddle", "haiku", "explain", "why")
_NAMED_TIMES = word_set(
    "january february march april may june july august september october november december spring summer autumn"
    " winter year month season christmas easter"
)
_LIKE_WHAT = ("is it like", "what it like")
_WONDERING = frozenset({"will", "should", "shall", "do", "can", "is", "are", "would"})
_COURTESIES = frozenset({"hello", "hi", "hey", "thanks", "thank", "bye", "goodbye"})
_FAREWELLS = frozenset({"thanks", "thank", "bye", "goodbye"})
_MARKS = frozenset("?!.,;:-–—()|\n")


@attrs.frozen
class Query:
    """A user's message: the places and days it names and what it wants.

    It `follows_up` when it goes on from what was said: "And in London?", "So what should I pack?", "Is it warm then?",
    or only a place. `gaps` is what makes it ambiguous if nothing was said before it, and `vague` says that its words
    are.
    """

    text: Text
    cities: tuple[Place, ...]
    days: tuple[str, ...]
    about_weather: bool
    wants_advice: bool
    wants_forecast: bool
    follows_up: bool
    vague: bool
    gaps: tuple[str, ...] = ()

    @property
    def fahrenheit(self) -> bool:
        """Whether it asks for degrees Fahrenheit."""
        return "fahrenheit" in self.text.said

    @property
    def courtesy(self) -> bool:
        """Whether it only greets, takes leave or tells what the user likes."""
        if "?" not in self.text.said and not self.concerns_weather and preferences_stated(self.text):
            return True
        if after_opening(self.text) == len(self.text.words) and "?" not in self.text.said:
            return True
        return not _COURTESIES.isdisjoint(self.text.said) and (_is_farewell(self.text) or not self.concerns_weather)

    @property
    def concerns_weather(self) -> bool:
        return self.about_weather or self.wants_advice


@lru_cache(maxsize=32)
def query(message: str | None) -> Query:
    """Read a user's message; one that only states a preference is not about the weather."""
    text = read(message)
    cities = places_asked(text)
    days = tuple(mention.day for mention in times(text))
    wants_advice = any(not _asks_what_comes(text, hit) for hit in find(text, _ADVICE)) or _asks_what_to_wear(text)
    asks = "?" in text.said or cities or days or wants_advice or not preferences_stated(text)
    asked = Query(
        text,
        cities,
        days,
        about_weather=bool(asks and find(text, _WEATHER) and not find(text, _NO_REQUEST)),
        wants_advice=wants_advice,
        wants_forecast=wants_forecast(days) or bool(find(text, _FUTURE)),
        follows_up=False,
        vague=bool(find(text, _VAGUE)),
    )
    return attrs.evolve(asked, follows_up=_follows_up(asked), gaps=tuple(_gaps(asked)))


def _asks_what_comes(text: Text, hit: Hit) -> bool:
    """Say whether a "should I" asks for the weather: "What should I expect?"."""
    return hit[2] == "should i" and text.word_at(hit[1] + 1) in ("expect", "know")


def _asks_what_to_wear(text: Text) -> bool:
    """Say whether a question is about things to wear: "Will I be ok in boots today?"."""
    asks = "?" in text.said or text.word_at(after_opening(text)) in _WONDERING
    return asks and bool(find(text, ITEMS))


def wants_forecast(days: Iterable[str]) -> bool:
    """Say whether one of the days is yet to come."""
    return any(day not in (NOW, TODAY, TONIGHT) for day in days)


def _follows_up(asked: Query) -> bool:
    words = asked.text.words
    first = after_opening(asked.text)
    end = next((place for place in range(len(words), 0, -1) if words[place - 1] not in _MARKS), 0)
    return (
        any(words[first : first + len(opening)] == opening for opening in _FOLLOW_UPS)
        or not {"so", "then"}.isdisjoint((*words[:1], *words[max(first - 1, 0) : first]))
        or any(words[max(end - len(ending), 0) : end] == ending for ending in _POINTING_BACK)
        or (words[max(end - 1, 0) : end] == ["it"] and words[end - 2] not in _BEFORE_AN_EMPTY_IT)
        or (len(words) <= _MOST_AROUND_A_TIME + 3 and bool(find(asked.text, _LIKE_WHAT)))
        or "there" in words[max(end - 2, 0) : end]
        or _is_only_a_place(asked)
        or (bool(asked.days) and not asked.cities and not asked.concerns_weather and len(words) <= _MOST_AROUND_A_TIME)
    )


def _is_only_a_place(asked: Query) -> bool:
    """Say whether a message says no more than where: "In Edinburgh.", "Sorry, I meant Oslo."."""
    if not asked.cities or asked.concerns_weather:
        return False
    named = {word for city in asked.cities for word in city.words}
    around = [word for word in asked.text.words if word not in _MARKS and word not in named and word not in OPENINGS]
    return len(around) <= _MOST_AROUND_A_PLACE and _ASKING.isdisjoint(around)


def _gaps(asked: Query) -> Iterator[str]:
    text = asked.text
    if "?" not in text.said and preferences_stated(text):
        return
    if asked.courtesy:
        return
    words = sum(word not in _MARKS for word in text.words)
    if asked.concerns_weather and not asked.cities:
        yield NO_LOCATION
    if asked.concerns_weather and _leaves_the_time_open(asked):
        yield NO_TIME
    if asked.vague or (words <= 2 and not asked.cities and not asked.days):
        yield _VAGUE_GAP
    if words <= 3 and not asked.concerns_weather and not asked.days and not asked.cities:
        yield _UNCLEAR


def _leaves_the_time_open(asked: Query) -> bool:
    """Say whether a message asks of the future or of a journey without a day or an hour."""
    text = asked.text
    if asked.days or _names_an_hour(text) or not _NAMED_TIMES.isdisjoint(text.said):
        return False
    return bool(find(text, _FUTURE_WITHOUT_A_DAY) or (asked.cities and find(text, _TRAVELLING)))


def _is_farewell(text: Text) -> bool:
    """Say whether a message opens with thanks or a goodbye and asks for nothing: "Thanks, I'll take the umbrella!"."""
    first = after_opening(text)
    asks = "?" in text.said or (text.word_at(first) in _ASKING and text.word_at(first - 1) != "i")
    return not (asks or _FAREWELLS.isdisjoint(text.words[:first]))


def _names_an_hour(text: Text) -> bool:
    return bool(times_of_day(text) or find(text, _SOON))


def gaps_left(asked: Query, earlier: Sequence[Message]) -> tuple[str, ...]:
    """Return what makes a message ambiguous: `no location`, `no time`, `vague`, `unclear intent`.

    `earlier` is what was said before; a place named there fills a missing location, and a short follow-up is clear.
    """
    if not earlier:
        return asked.gaps
    filled = {_UNCLEAR}
    if not asked.vague:
        filled.add(_VAGUE_GAP)
    if NO_LOCATION in asked.gaps and any(cities_mentioned(said) for said in earlier):
        filled.add(NO_LOCATION)
    if asked.follows_up and any(times(read(said.text)) for said in earlier if said.role == "user"):
        filled.add(NO_TIME)
    return tuple(gap for gap in asked.gaps if gap not in filled)
