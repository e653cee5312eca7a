"""Statements: what an answer says about the weather, for which place and for when."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import attrs

from keval_metrics_weather.reading.conditions import Condition, conditions
from keval_metrics_weather.reading.gazetteer import Place, place_key
from keval_metrics_weather.reading.kinds import Kind, Seen, kinds, of_the_air
from keval_metrics_weather.reading.places import find_names, places_told
from keval_metrics_weather.reading.tables import Span, heads_of
from keval_metrics_weather.reading.temperatures import Quantity, quantities
from keval_metrics_weather.reading.times import LATER, NOW, PAST, TODAY, TONIGHT, Time, hours_named, times
from keval_metrics_weather.reading.words import Said, Text, matches, read

_SEAMS = frozenset({".", "!", "?", ";", ",", "\n", "|", "—", "and", "but", "while", "whereas", "however"})
"""The words and marks at which a clause ends."""


SENTENCE_ENDS = frozenset({".", "!", "?", "\n", "|"})
_COMPARING_WITH = frozenset({"after", "than", "unlike", "from", "following", "since", "with", "to"})
_RIGHT_AFTER = 4


class Anchors(NamedTuple):
    """Offsets in a text that what stands near them belongs to, each with the number of its clause and a value.

    For those that do not hold to the end, `until` is the offset up to which they do, and `lasting` the value that holds
    from there on.
    """

    starts: Sequence[int]
    clauses: Sequence[int]
    values: Sequence[str]
    until: Mapping[int, int]
    lasting: Mapping[int, str | None]

    def near(self, clauses: tuple[int, int], offset: int, end: int, following: int) -> int | None:
        """Return the number of the anchor that a mention from `offset` to `end` belongs to, `None` if there is none.

        `clauses` are those that it begins and ends in. Its anchor is the one right after it ("25 °C yesterday"), else
        the last before it in the same clause, else the next in the same clause (unless another mention, at `following`,
        comes first), else the last one anywhere before.
        """
        starts = self.starts
        if not starts:
            return None
        after = bisect_right(starts, offset)
        next_one = after < len(starts) and starts[after] < following and self.clauses[after] == clauses[1]
        if next_one and starts[after] - end <= _RIGHT_AFTER:
            return after
        if after and self.clauses[after - 1] == clauses[0]:
            return after - 1
        if next_one:
            return after
        return after - 1 if after else None

    def within(self, begin: int, end: int, otherwise: int | None) -> int | None:
        """Return the number of the first anchor from one offset to another."""
        number = bisect_left(self.starts, begin)
        return number if number < len(self.starts) and self.starts[number] < end else otherwise

    def value(self, number: int | None, offset: int) -> str | None:
        """Return what holds at an offset that belongs to an anchor."""
        if number is None:
            return None
        return self.lasting[number] if number in self.until and offset >= self.until[number] else self.values[number]


class Where(NamedTuple):
    """How the clauses of a text hang together, and which places and times its parts are about."""

    text: Text
    seams: Sequence[int]
    days: Anchors
    places: Anchors

    @classmethod
    def of(cls, text: Text, places: Sequence[Place], times: Sequence[Time]) -> Where:
        """Read a text's clauses."""
        seams = [text.starts[place] for place in text.places_of(_SEAMS)]
        named = [(place.start, place.key) for place in places if not _compared_with(text, place)]
        return cls(text, seams, _anchors(text, seams, times), _anchors(text, seams, named))

    def clause(self, offset: int) -> Span:
        """Return from where to where the clause around an offset goes."""
        number = bisect_right(self.seams, offset)
        begin = self.seams[number - 1] if number else 0
        return begin, self.seams[number] if number < len(self.seams) else len(self.text.plain)

    def told(self, start: int, end: int, following: int, heads: Sequence[Span]) -> tuple[int | None, int | None]:
        """Return the anchors of a mention from offset `start` to `end`: that of its place and that of its day.

        Each is the one in its column's head, else the one near it.
        """
        clauses = bisect_right(self.seams, start), bisect_left(self.seams, end)
        place = self.places.near(clauses, start, end, following)
        day = self.days.near(clauses, start, end, following)
        for first, last in reversed(heads):
            begin, until = self.text.start_of(first), self.text.start_of(last)
            place, day = self.places.within(begin, until, place), self.days.within(begin, until, day)
        return place, day


def _compared_with(text: Text, place: Place) -> bool:
    """Say whether a place is only what another is compared with: "milder than Mikkeli: −5 °C"."""
    at = bisect_left(text.starts, place.start)
    if text.padded[at - 1] in ("near", "outside"):
        return True
    return text.padded[at - 1] in ("than", "unlike") and text.padded[at + len(place.words)] not in ("(", "at", "is")


def _anchors(text: Text, seams: Sequence[int], found: Iterable[tuple[int, str]]) -> Anchors:
    found = sorted(found)
    starts = [start for start, _ in found]
    values = [value for _, value in found]
    until: dict[int, int] = {}
    lasting: dict[int, str | None] = {}
    if PAST in values:
        ends = [*(text.starts[place] for place in text.places_of(SENTENCE_ENDS)), len(text.plain)]
        for number, (start, value) in enumerate(found):
            if value == PAST:
                until[number] = _end_of_the_past(text, start, ends[bisect_right(ends, start)])
                before = number - 1
                lasting[number] = lasting.get(before, values[before]) if number else None
    return Anchors(starts, [bisect_right(seams, start) for start in starts], values, until, lasting)


def _end_of_the_past(text: Text, start: int, sentence_end: int) -> int:
    """Return where a past day ends: with its sentence, or with its clause when it is compared with or came before."""
    place = bisect_left(text.starts, start)
    if _COMPARING_WITH.isdisjoint(text.words[max(place - 3, 0) : place]):
        return sentence_end
    commas = text.index.get(",", ())
    comma = (*commas[bisect_right(commas, place) :][:1], len(text.words))[0]
    return sentence_end if text.padded[comma + 1 :][:1] == ["when"] else min(text.start_of(comma), sentence_end)


_USUAL = re.compile(r" (?P<usual>typically|usually|normally|averages?|typical(?! (?:for|of) ))(?= )")
_NO_AIR: Mapping[str, Kind] = {"felt": "feels_like", "water": "water", "dew": "dew_point"}
_TO_COME = frozenset({"will", "by", "later", "tonight", "expected", "should", "until", "overnight", "then"})
_PRESENT = frozenset({"is", "now", "currently", "of", "has", "this", "feels", "updated", "moment", "sits"})
_MOST_IN_A_GROUP = 7
_GROUPING = frozenset({"and", "&", "both", "or", ",", "then"})


class Statement(NamedTuple):
    """What a text states from offset `start` to `end`.

    A temperature is from `low` to `high` °C, `vague` if only its tens are told; a condition is `condition`. `day` is as
    in `Time` and `place` as in `Place.key`, both `None` where the text does not tell.
    """

    kind: Kind | None
    day: str | None
    place: str | None
    start: int
    end: int
    said: str
    low: float = 0.0
    high: float = 0.0
    converted: bool = False
    vague: bool = False
    condition: Condition | None = None

    @property
    def is_range(self) -> bool:
        return self.low != self.high

    def evidence(self) -> dict[str, Any]:
        """Return the statement as plain data, with where it stands in the text."""
        read: dict[str, Any] = {"said": self.said, "at": [self.start, self.end], "place": self.place, "time": self.day}
        if self.condition is not None:
            groups = sorted(self.condition.groups)
            return {"kind": "condition", "value": groups, **read, "stance": self.condition.stance}
        return {"kind": self.kind, "value": [self.low, self.high] if self.is_range else self.low, **read}


def temperature_statements(where: Where, quantities: Sequence[Quantity]) -> list[Statement]:
    """Return what the temperatures of a text are said to be, of which place and for when."""
    text = where.text
    spans = [(bisect_left(text.starts, q.start), bisect_left(text.starts, q.end) - 1) for q in quantities]
    heads = [heads_of(text, first) for first, _ in spans]
    hours = hours_named(text)
    found: list[Statement] = []
    seen = kinds(text, spans, heads)
    usual = _usual_sentences(text) if "typical" in text.said else ()
    for number, (quantity, says) in enumerate(zip(quantities, seen, strict=True)):
        following = quantities[number + 1].start if number + 1 < len(quantities) else len(text.plain) + 1
        previous = found[-1] if found else None
        kind = _kind(where, says, quantity, hours, previous)
        if usual and any(begin <= quantity.start < end for begin, end in usual):
            kind = "usual"
        place, day = where.told(quantity.start, quantity.end, following, heads[number])
        named = where.places.value(place, quantity.start)
        today = _has_an_hour(where, quantity, hours) and _is_later(where, quantity, len(hours) > 1)
        for named_day in _days(where, day, quantity, quantities, number):
            on = LATER if today and named_day in (None, NOW, TODAY, TONIGHT) else named_day
            for low, high, of in _parts(quantity, kind, says):
                found.append(Statement(of, on, named, *quantity[2:5], low, high, *quantity[5:]))
    return found


def _parts(quantity: Quantity, kind: Kind, says: Seen) -> list[tuple[float, float, Kind]]:
    """Return the one temperature that a quantity is, or the two of "High / Low: 30 °C / 14 °C" and of a course."""
    moving = says.kind in ("rise", "fall") and quantity.is_range and not quantity.vague
    if moving:  # "drops from 18 °C to 9 °C"
        return [(quantity.low, quantity.low, "temperature"), (quantity.high, quantity.high, "temperature")]
    if kind == "temperature" and says.firm and quantity.is_range:
        return [(quantity.high, quantity.high, "high"), (quantity.low, quantity.low, "low")]
    return [(quantity.low, quantity.high, kind)]


def _kind(where: Where, says: Seen, quantity: Quantity, hours: Sequence[int], previous: Statement | None) -> Kind:
    """Return what a quantity is the temperature of, as the words around it tell.

    What something climbs or drops to is that of a named hour, or the day's extreme.
    """
    if says.kind in _NO_AIR:
        return _NO_AIR[says.kind]
    if says.whole is not None:
        return says.whole
    if says.after is not None and not says.firm:
        return says.after
    if says.kind in ("high", "low"):
        return cast(Kind, says.kind)
    if says.kind not in ("rise", "fall") or _has_an_hour(where, quantity, hours):
        return "temperature"
    after_a_high = previous is not None and previous.kind == "high"
    if previous is None or not after_a_high or "." in where.text.plain[previous.end : quantity.start]:
        return "high" if says.kind == "rise" else "temperature"
    return "high" if says.kind == "rise" else "low"


def _has_an_hour(where: Where, quantity: Quantity, hours: Sequence[int]) -> bool:
    """Say whether the clause of a quantity names an hour: then it is the temperature of that hour."""
    begin, end = where.clause(quantity.start)
    return bisect_left(hours, begin) < bisect_left(hours, end)


def _is_later(where: Where, quantity: Quantity, hour_by_hour: bool) -> bool:
    """Say whether the clause of a quantity tells of an hour to come, rather than of now: "by midnight", "at 18:00"."""
    first, last = [bisect_left(where.text.starts, offset) for offset in where.clause(quantity.start)]
    words = where.text.words[first:last]
    return _PRESENT.isdisjoint(words) and (hour_by_hour or not _TO_COME.isdisjoint(words))


def _days(
    where: Where, number: int | None, quantity: Quantity, quantities: Sequence[Quantity], at: int
) -> Sequence[str | None]:
    """Return the days a quantity is of: all of a group ("Monday and Tuesday"), or its own of as many temperatures."""
    days = where.days
    last = days.value(number, quantity.start)
    if number is None or not number or days.starts[number] > quantity.start or last == PAST:
        return (last,)
    group = [days.values[n] for n in _run(number, number + 1, lambda n: _grouped(where, n))]
    if len(group) == 1:
        return (last,)

    def listed(n: int) -> bool:
        between = where.text.plain[quantities[n - 1].end : quantities[n].start].strip(" *")
        return between in ("and", ",", ", and", "or", "/", "then")

    row = _run(at, len(quantities), listed)
    return (group[row.index(at)],) if len(row) == len(group) else group


def _run(at: int, end: int, joined: Callable[[int], bool]) -> range:
    """Return the numbers around one, of which each but the first is joined to the one before it."""
    first = last = at
    while first and at - first < _MOST_IN_A_GROUP and joined(first):
        first -= 1
    while last + 1 < end and last - at < _MOST_IN_A_GROUP and joined(last + 1):
        last += 1
    return range(first, last + 1)


def _grouped(where: Where, number: int) -> bool:
    """Say whether a day is told together with the one before it: "Monday and Tuesday"."""
    text, (one, other) = where.text, where.days.starts[number - 1 : number + 1]
    between = text.words[bisect_left(text.starts, one) + 1 : bisect_left(text.starts, other)]
    before, day = where.days.values[number - 1 : number + 1]
    if before == NOW or before[:2].isdigit() != day[:2].isdigit():
        return False  # "Saturday, June 20" is one day
    return 0 < len(between) <= 2 and between[0] in _GROUPING


def condition_statements(where: Where, conditions: Sequence[Condition]) -> list[Statement]:
    """Return the weather that a text speaks of, with its place and its time."""
    found = []
    end = len(where.text.plain) + 1
    usual, in_table = _usual_sentences(where.text), "|" in where.text.said
    for number, condition in enumerate(conditions):
        if usual and any(first <= condition.start < last for first, last in usual):
            continue
        following = conditions[number + 1].start if number + 1 < len(conditions) else end
        start, last = condition.start, condition.end
        heads = heads_of(where.text, bisect_left(where.text.starts, start)) if in_table else ()
        place, day = where.told(start, last, following, heads)
        on, named = where.days.value(day, start), where.places.value(place, start)
        found.append(Statement(None, on, named, start, last, condition.word, condition=condition))
    return found


def _usual_sentences(text: Text) -> list[tuple[int, int]]:
    """Return from where to where a text says what is usual, rather than what is."""
    ends = text.places_of(SENTENCE_ENDS | {"but", "now"})
    found = []
    for _, place, _ in matches(text, _USUAL):
        number = bisect_left(ends, place)
        last = ends[number] if number < len(ends) else len(text.words)
        found.append((text.starts[ends[number - 1]] if number else 0, text.start_of(last)))
    return found


_MEASURED = re.compile(
    r"\d(?<![\w.,]\d)\d{0,3}(?:[.,]\d{1,3})? ?(?:%|(?:percent|km/h|kmh|kph|mph|m/s|mm|cm|hpa|mbar|mb|knots?|kn)\b)"
)
_NAMED = re.compile(
    r"\b(?:humidity|wind|winds|pressure|uv index)(?: speed)?(?: (?:is|of|at|around))?:? "
    r"(\d{1,4}(?:[.,]\d{1,3})?)(?![.,]?\d|[:/-])"
)


@attrs.frozen
class WeatherData:
    """The measurements of a text as written, the weather it speaks of, and the offset of the first of both."""

    measured: tuple[str, ...]
    spoken: tuple[str, ...]
    start: int | None


@lru_cache(maxsize=64)
def weather_data(text: Text) -> WeatherData:
    """Return the temperatures and other measurements of a text and the conditions it asserts or denies."""
    measured = [(each.start, each.said, each.end) for each in quantities(text, False)]
    measured += [(match.start(), match.group(), match.end()) for match in _MEASURED.finditer(text.plain)]
    known = {start for start, _, _ in measured}
    named = _NAMED.finditer(text.plain)
    measured += [(match.start(), match.group(), match.end()) for match in named if match.start(1) not in known]
    measured.sort()
    spoken = [each for each in conditions(text) if each.stance != "possible"]
    figures = [Said(said, text, start, end) for start, said, end in measured]
    words = [Said(each.word, text, each.start, each.end) for each in spoken]
    return WeatherData(
        tuple(dict.fromkeys(figures)),
        tuple(dict.fromkeys(words)),
        min([each.start for each in (*figures[:1], *words[:1])], default=None),
    )


class Reading(NamedTuple):
    """What an answer says: the places that it names, and everything that it states in degrees."""

    text: Text
    places: Sequence[Place]
    where: Where
    temperatures: Sequence[Statement]

    @property
    def of_the_air(self) -> Sequence[Statement]:
        """The temperatures of the air."""
        return [statement for statement in self.temperatures if of_the_air(statement.kind)]

    def conditions(self) -> Sequence[Statement]:
        """Return the weather that it speaks of."""
        found = conditions(self.text)
        return condition_statements(self.where, found) if found else ()


def reading(text: Text, names: Iterable[str] = (), fahrenheit: bool = False) -> Reading:
    """Return what a text says; `names` are places that it is known to be about, which the table may not list."""
    places = {place.start: place for place in places_told(text)}
    for name, starts in find_names(text, names).items():
        words = tuple(read(name).words)
        places |= {start: Place(name, words, start, place_key(words)) for start in starts}
    named = [places[start] for start in sorted(places)]
    where = Where.of(text, named, times(text))
    found = quantities(text, fahrenheit)
    return Reading(text, named, where, temperature_statements(where, found) if found else ())
