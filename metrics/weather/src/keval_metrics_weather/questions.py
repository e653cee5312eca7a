"""Questions: what a user's message asks for, what it leaves open, and what the conversation before it settles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from keval import Message
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.reading.advice import advice
from keval_metrics_weather.reading.asking import asking, asks_for_data
from keval_metrics_weather.reading.gazetteer import TIME_WORDS, Place
from keval_metrics_weather.reading.places import OPENINGS, after_opening, places_asked, places_told
from keval_metrics_weather.reading.statements import weather_data
from keval_metrics_weather.reading.times import NOW, TODAY, TONIGHT, times, times_of_day
from keval_metrics_weather.reading.words import Hit, Text, denied, find, read, said, vocabulary, word_set
from keval_metrics_weather.subjects import is_of_works, is_weather
from keval_metrics_weather.wording import CLARIFYING, ITEMS, OUTDOOR, RECOMMENDING

_EXAMPLES = ("for example", "for instance", "such as")
_NO_MENTION = (*CLARIFYING, *_EXAMPLES)
_SENTENCE_ENDS = (".", "!", "?", "\n")


def cities_mentioned(message: Message) -> tuple[Place, ...]:
    """Return the places a message is about; those that an assistant names to ask back or as examples are none."""
    text = read(message.text)
    return places_asked(text) if message.role == "user" else _cities_told(text)


@lru_cache(maxsize=64)
def _cities_told(text: Text) -> tuple[Place, ...]:
    cities = places_told(text)
    if not cities:
        return ()
    hits = [(text.starts[first], keyword in _EXAMPLES) for first, _, keyword in find(text, _NO_MENTION)]
    asking = {start for start, example in hits if not example} | _starts(text, "?")
    examples = {start for start, example in hits if example}
    if not (asking or examples):
        return cities
    ends = sorted(start for mark in _SENTENCE_ENDS for start in _starts(text, mark))
    sentences_asking = {bisect_left(ends, start) for start in asking}
    first_examples: dict[int, int] = {}
    for start in sorted(examples):
        first_examples.setdefault(bisect_left(ends, start), start)
    told = []
    for city in cities:
        sentence = bisect_left(ends, city.start)
        if sentence not in sentences_asking and city.start < first_examples.get(sentence, len(text.plain)):
            told.append(city)
    return tuple(told)


def _starts(text: Text, mark: str) -> set[int]:
    return {text.starts[place] for place in text.index.get(mark, ())}


NO_LOCATION = "no location"
NO_TIME = "no time"
SEVERAL_PLACES = "several places of that name"
_SHARED_NAMES = frozenset({"springfield", "clinton", "franklin", "greenville", "fairview", "georgetown", "salem"})
"""Names of towns that many places have and none is known best by (U.S. Census Bureau, Gazetteer Files)."""
_VAGUE_GAP = "vague"
_UNCLEAR = "unclear intent"

_WEATHER = vocabulary("questions weather")
_ADVICE = vocabulary("advice")
_IN_GENERAL = ("in general", "generally", "at what temperature", "at which temperature", "usually", "as a rule")
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
_NO_REQUEST = ("joke", "poem", "song", "story", "fun fact", "fact about", "riddle", "haiku", "explain", "why")
_NAMED_TIMES = frozenset(vocabulary("named times"))
_LIKE_WHAT = ("is it like", "what it like")
_WONDERING = frozenset({"will", "should", "shall", "do", "can", "is", "are", "would"})
_COURTESIES = frozenset({"hello", "hi", "hey", "thanks", "thank", "bye", "goodbye"})
_FAREWELLS = frozenset({"thanks", "thank", "bye", "goodbye"})
_STATING = word_set("i me my we us our you your it is are was were has have had there love loving hate")
_REQUESTING = word_set(
    "tell show give check compare describe list find get need what when where which who could did does"
)
_REQUESTS = ("to know", "tell me", "show me", "give me", "let me", "wonder", "curious", "please", "i need the",
             "i need a", "i want the", "i want a", "would like the", "would like a", "would love", "need weather",
             "want weather", "looking for")  # fmt: skip
_BESIDE_A_TIME = word_set("about and at for from how in next of on or so the then this to what coming following")
_UNSPECIFIC = frozenset(vocabulary("unspecific"))
_MARKS = frozenset("?!.,;:-–—()|\n")


class Query(NamedTuple):
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
        if _COURTESIES.isdisjoint(self.text.said):
            return False
        return _is_farewell(self.text) or not (self.concerns_weather or _is_unspecific(self.text))

    @property
    def states(self) -> bool:
        """Whether it only tells something: "I moved to Paris, and I dislike its weather"."""
        if "?" in self.text.said or self.text.said.isdisjoint(_STATING):
            return False
        return not find(self.text, _REQUESTS) and all(map(_is_statement, _sentences(self.text)))

    @property
    def concerns_weather(self) -> bool:
        return self.about_weather or self.wants_advice


@lru_cache(maxsize=32)
def query(message: str | None) -> Query:
    """Read a user's message; one that only states a preference is not about the weather."""
    text = read(message)
    cities = places_asked(text)
    days = tuple(mention.day for mention in times(text))
    wants_advice = not is_of_works(text) and (
        any(not _asks_what_comes(text, hit) for hit in find(text, _ADVICE)) or _asks_what_to_wear(text)
    )
    asks = "?" in text.said or cities or days or wants_advice or not preferences_stated(text)
    asked = Query(
        text,
        cities,
        days,
        about_weather=bool(
            asks and any(is_weather(text, hit) for hit in find(text, _WEATHER)) and not find(text, _NO_REQUEST)
        ),
        wants_advice=wants_advice,
        wants_forecast=wants_forecast(days) or bool(find(text, _FUTURE)),
        follows_up=False,
        vague=bool(find(text, _VAGUE)),
    )
    asked = asked._replace(follows_up=_follows_up(asked))
    return asked._replace(gaps=tuple(_gaps(asked)))


def _sentences(text: Text) -> Iterator[Sequence[str]]:
    """Yield the words of each sentence without its opening ("Thanks, …") and without marks."""
    ends = [*text.places_of(frozenset(_SENTENCE_ENDS)), len(text.words)]
    first = 0
    for end in ends:
        words = [word for word in text.words[first:end] if word not in _MARKS]
        opening = next((at for at, word in enumerate(words) if word not in OPENINGS), len(words))
        if words[opening:]:
            yield words[opening:]
        first = end + 1


def _is_statement(words: Sequence[str]) -> bool:
    """Say whether a sentence tells something: it has a subject or a verb of its own and does not begin as a request."""
    if words[0] in _REQUESTING or words[0] in _WONDERING or words[0] in _ASKING:
        return False
    return not _STATING.isdisjoint(words) or any(word.endswith("ed") for word in words)


def _asks_what_comes(text: Text, hit: Hit) -> bool:
    """Say whether a "should I" asks for the weather: "What should I expect?"."""
    return hit[2] == "should i" and text.padded[hit[1] + 1] in ("expect", "know")


def _asks_what_to_wear(text: Text) -> bool:
    """Say whether a question is about things to wear: "Will I be ok in boots today?"."""
    asks = "?" in text.said or text.padded[after_opening(text)] in _WONDERING
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
    unspecific = not asked.cities and not asked.days and _is_unspecific(text)
    unplaced = asked.concerns_weather and not find(text, _IN_GENERAL)
    outing = bool(asked.days and find(text, OUTDOOR))
    elliptic = asked.follows_up and not asked.concerns_weather  # "What about the trip?"
    if not asked.cities and (unplaced or unspecific or outing or elliptic or _is_only_a_time(asked)):
        yield NO_LOCATION
    if any(" ".join(city.words) in _SHARED_NAMES for city in asked.cities):
        yield SEVERAL_PLACES
    if asked.concerns_weather and _leaves_the_time_open(asked):
        yield NO_TIME
    is_vague = asked.vague and not (asked.cities and asked.concerns_weather)
    if is_vague or unspecific or (words <= 2 and not asked.cities and not asked.days):
        yield _VAGUE_GAP
    if words <= 3 and not asked.concerns_weather and not asked.days and not asked.cities:
        yield _UNCLEAR


def _is_unspecific(text: Text) -> bool:
    """Say whether a message says no more than that something is wanted: "Help!", "Any ideas?", "I need help"."""
    content = text.said - _MARKS - OPENINGS - _NO_KEYWORDS - {"need", "want", "some", "any", "more", "got", "out"}
    return bool(content) and content <= _UNSPECIFIC


def _is_only_a_time(asked: Query) -> bool:
    """Say whether a message says no more than when: "weekend?", "And what about Monday?"."""
    if not (asked.days or _names_an_hour(asked.text)):
        return False
    words = asked.text.said - _MARKS - OPENINGS - _BESIDE_A_TIME - _NO_KEYWORDS - TIME_WORDS - _UNSPECIFIC
    return all(word[:1].isdigit() for word in words)


def _leaves_the_time_open(asked: Query) -> bool:
    """Say whether a message asks of the future or of a journey without a day or an hour."""
    text = asked.text
    if asked.days or _names_an_hour(text) or not _NAMED_TIMES.isdisjoint(text.said):
        return False
    return bool(find(text, _FUTURE_WITHOUT_A_DAY) or (asked.cities and find(text, _TRAVELLING)))


def _is_farewell(text: Text) -> bool:
    """Say whether a message opens with thanks or a goodbye and asks for nothing: "Thanks, I'll take the umbrella!"."""
    first = after_opening(text)
    asks = "?" in text.said or (text.padded[first] in _ASKING and text.padded[first - 1] != "i")
    return not (asks or _FAREWELLS.isdisjoint(text.words[:first]))


def _names_an_hour(text: Text) -> bool:
    return bool(times_of_day(text) or find(text, _SOON))


def gaps_left(asked: Query, earlier: Sequence[Message]) -> tuple[str, ...]:
    """Return what makes a message ambiguous: `no location`, `no time`, `vague`, `unclear intent`.

    `earlier` is what was said before. A place named there settles a missing location while the conversation stays with
    the weather, and a short follow-up is clear.
    """
    if not earlier:
        return asked.gaps
    filled = {_UNCLEAR}
    if not asked.vague:
        filled.add(_VAGUE_GAP)
    if NO_LOCATION in asked.gaps and any(map(cities_mentioned, earlier)) and _goes_on(asked, earlier):
        filled.add(NO_LOCATION)
    told_times = any(times(read(said.text)) for said in earlier if said.role == "user")
    if NO_TIME in asked.gaps and told_times and _goes_on(asked, earlier):
        filled.add(NO_TIME)
    return tuple(gap for gap in asked.gaps if gap not in filled)


def _goes_on(asked: Query, earlier: Sequence[Message]) -> bool:
    """Say whether a message follows up, or what was said last, but for courtesies, was about the weather, too."""
    told = next((said for said in reversed(earlier) if said.role == "assistant"), None)
    if asked.follows_up or (told is not None and weather_data(read(told.text)).measured):
        return True
    messages = (query(said.text) for said in reversed(earlier) if said.role == "user")
    before = next((message for message in messages if not message.courtesy or "?" in message.text.said), None)
    if before is None or before.concerns_weather or before.follows_up:
        return True
    return bool(before.cities) and "?" not in before.text.said  # "I'm in Oslo."


_NO_KEYWORDS = OPENINGS | frozenset(vocabulary("no keywords"))
_PRESENT = frozenset({NOW, TODAY})
_GENERAL = frozenset({"weather"})
_SAME = dict.fromkeys(("conditions", "condition", "outlook", "climate"), "weather") | dict.fromkeys(
    ("temp", "hot", "warm", "cold", "degrees"), "temperature"
)
"""Words that ask for the same as another."""


def ask_alike(question: Query, other: Query, similarity: float) -> bool:
    """Say whether two messages ask the same, wherever they ask it about.

    They name the same days, of which now and today are none, want weather both or neither, and share at least
    `similarity` of the keywords of the one with fewer. What only states something asks nothing.
    """
    if question.states or other.states or question.wants_advice != other.wants_advice:
        return False
    these, those = _keywords(question), _keywords(other)
    if (question.concerns_weather or these == _GENERAL) != (other.concerns_weather or those == _GENERAL):
        return False
    if set(question.days) - _PRESENT != set(other.days) - _PRESENT:
        return False
    fewer = min(len(these), len(those))
    return len(these & those) >= similarity * fewer if fewer else these == those


@lru_cache(maxsize=64)
def _keywords(asked: Query) -> frozenset[str]:
    """Return the words that say what is asked, leaving out where: places are compared by themselves.

    "How's Paris?" asks for the weather as "conditions" do, and so does the forecast for a day.
    """
    places = {word for city in asked.cities for word in city.words}
    words = [word for word in asked.text.said - _NO_KEYWORDS - places if word[:1].isalnum()]
    same = _SAME | {"forecast": "weather"} if asked.days else _SAME
    found = frozenset([same.get(word, word) for word in words])
    return found if found or not asked.cities else _GENERAL


def clarifying(answer: Text, phrases: tuple[str, ...] = CLARIFYING) -> tuple[str, ...]:
    """Return the words by which an answer asks back; "please provide me with the weather data" asks for no more."""
    hits = [hit for hit in find(answer, phrases) if not denied(answer, hit) and not asks_for_data(answer, hit[0])]
    return tuple(dict.fromkeys((*asking(answer).found, *said(answer, hits))))


def only_asks_back(answer: Text, phrases: tuple[str, ...] = CLARIFYING) -> bool:
    """Say whether an answer asks back and tells nothing: neither the weather nor what to do."""
    return (
        bool(clarifying(answer, phrases))
        and weather_data(answer).start is None
        and not advice(answer, RECOMMENDING, ITEMS).given
    )
