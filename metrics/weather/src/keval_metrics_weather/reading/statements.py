"""Statements: each temperature and condition that a text states, with its kind, its place and its time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keval_metrics_weather.reading.blocks import Span, heads_of
from keval_metrics_weather.reading.conditions import Condition
from keval_metrics_weather.reading.kinds import Seen, kinds
from keval_metrics_weather.reading.qualifiers import Kind
from keval_metrics_weather.reading.quantities import Quantity
from keval_metrics_weather.reading.times import LATER, NOW, PAST, TODAY, TONIGHT, hours_named
from keval_metrics_weather.reading.where import SENTENCE_ENDS, Where
from keval_metrics_weather.reading.words import Text

__all__ = ["Statement", "condition_statements", "temperature_statements"]


_USUAL = frozenset({"typically", "usually", "normally", "averages", "average"})
_NO_AIR: Mapping[str, Kind] = {"felt": "feels_like", "water": "water", "dew": "dew_point"}
_TO_COME = frozenset({"will", "by", "later", "tonight", "expected", "should", "until", "overnight", "then"})
_PRESENT = frozenset({"is", "now", "currently", "of", "has", "this", "feels", "updated", "moment", "sits"})
_MOST_IN_A_GROUP = 7
_MOST_IN_A_SENTENCE = 60
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
            return {
                "kind": "condition",
                "value": sorted(self.condition.groups),
                **read,
                "stance": self.condition.stance,
            }
        return {"kind": self.kind, "value": [self.low, self.high] if self.is_range else self.low, **read}


def temperature_statements(where: Where, quantities: Sequence[Quantity]) -> list[Statement]:
    """Return what the temperatures of a text are said to be, of which place and for when."""
    text = where.text
    starts = [quantity.start for quantity in quantities]
    spans = [(bisect_left(text.starts, q.start), bisect_left(text.starts, q.end) - 1) for q in quantities]
    heads = [heads_of(text, first) for first, _ in spans]
    hours = hours_named(text)
    found: list[Statement] = []
    seen = kinds(text, spans, heads)
    usual = _usual_sentences(text) if "typical" in text.said else ()
    for number, (quantity, says) in enumerate(zip(quantities, seen, strict=True)):
        following = starts[number + 1] if number + 1 < len(starts) else len(text.plain) + 1
        previous = found[-1] if found else None
        kind = _told_kind(says) or _moving_kind(where, says, quantity, hours, previous)
        if any(begin <= quantity.start < end for begin, end in usual):
            kind = "usual"
        place = where.told(where.places, (quantity.start, quantity.end), following, heads[number])
        day = where.told(where.days, (quantity.start, quantity.end), following, heads[number])
        named = where.places.value(place, quantity.start)
        today = _has_an_hour(where, quantity, hours) and _is_later(where, quantity, len(hours) > 1)
        for named_day in _days(where, day, quantity, quantities, number):
            on = LATER if today and named_day in (None, NOW, TODAY, TONIGHT) else named_day
            for low, high, of in _parts(quantity, kind, says):
                found.append(
                    Statement(
                        of,
                        on,
                        named,
                        quantity.start,
                        quantity.end,
                        quantity.said,
                        low,
                        high,
                        quantity.converted,
                        quantity.vague,
                    )
                )
    return found


def _parts(quantity: Quantity, kind: Kind, says: Seen) -> list[tuple[float, float, Kind]]:
    """Return the one temperature that a quantity is, or the two of "High / Low: 30 °C / 14 °C" and of a course."""
    moving = says.kind in ("rise", "fall") and quantity.is_range and not quantity.vague
    if moving:  # "drops from 18 °C to 9 °C"
        return [(quantity.low, quantity.low, "temperature"), (quantity.high, quantity.high, "temperature")]
    if kind == "temperature" and says.firm and quantity.is_range:
        return [(quantity.high, quantity.high, "high"), (quantity.low, quantity.low, "low")]
    return [(quantity.low, quantity.high, kind)]


def _told_kind(says: Seen) -> Kind | None:
    """Return the kind that the words around a quantity tell; `None` after a verb such as "climbs to"."""
    if says.kind in _NO_AIR:
        return _NO_AIR[says.kind]
    if says.whole is not None:
        return says.whole
    if says.after is not None and not says.firm:
        return says.after
    if says.kind == "high":
        return "high"
    if says.kind == "low":
        return "low"
    return None if says.kind in ("rise", "fall") else "temperature"


def _moving_kind(
    where: Where, says: Seen, quantity: Quantity, hours: Sequence[int], previous: Statement | None
) -> Kind:
    """Return what a temperature is that something climbs or drops to: of a named hour, or the day's extreme."""
    if _has_an_hour(where, quantity, hours):
        return "temperature"
    if says.kind == "rise":
        return "high"
    after_a_high = previous is not None and previous.kind == "high"
    same_sentence = previous is not None and "." not in where.text.plain[previous.end : quantity.start]
    return "low" if after_a_high and same_sentence else "temperature"


def _has_an_hour(where: Where, quantity: Quantity, hours: Sequence[int]) -> bool:
    """Say whether the clause of a quantity names an hour: then it is the temperature of that hour."""
    begin, end = where.clause(quantity.start)
    at = bisect_left(hours, begin)
    return at < len(hours) and hours[at] < end


def _is_later(where: Where, quantity: Quantity, hour_by_hour: bool) -> bool:
    """Say whether the clause of a quantity tells of an hour to come, rather than of now: "by midnight", "at 18:00"."""
    first, last = where.clause(quantity.start)
    words = where.text.words[bisect_left(where.text.starts, first) : bisect_left(where.text.starts, last)]
    return _PRESENT.isdisjoint(words) and (hour_by_hour or not _TO_COME.isdisjoint(words))


def _days(
    where: Where, number: int | None, quantity: Quantity, quantities: Sequence[Quantity], at: int
) -> Sequence[str | None]:
    """Return the days a quantity is of: all of a group ("Monday and Tuesday"), or its own of as many temperatures."""
    days = where.days
    last = days.value(number, quantity.start)
    if number is None or not number or days.starts[number] > quantity.start or last == PAST:
        return (last,)
    first = number
    while first and number - first < _MOST_IN_A_GROUP and _grouped(where, first):
        first -= 1
    if first == number:
        return (last,)
    group = [days.values[n] for n in range(first, number + 1)]
    row = [at]
    while (
        row[-1] + 1 < len(quantities)
        and len(row) < _MOST_IN_A_GROUP
        and _listed(where, quantities[row[-1]], quantities[row[-1] + 1])
    ):
        row.append(row[-1] + 1)
    while row[0] and len(row) < 2 * _MOST_IN_A_GROUP and _listed(where, quantities[row[0] - 1], quantities[row[0]]):
        row.insert(0, row[0] - 1)
    return (group[row.index(at)],) if len(row) == len(group) else group


def _grouped(where: Where, number: int) -> bool:
    """Say whether a day is told together with the one before it: "Monday and Tuesday"."""
    text, starts = where.text, where.days.starts
    one, other = bisect_left(text.starts, starts[number - 1]), bisect_left(text.starts, starts[number])
    between = text.words[one + 1 : other]
    if where.days.values[number - 1][:2].isdigit() != where.days.values[number][:2].isdigit():
        return False  # "Saturday, June 20" is one day
    return 0 < len(between) <= 2 and not _GROUPING.isdisjoint(between) and between[0] in _GROUPING


def _listed(where: Where, quantity: Quantity, following: Quantity) -> bool:
    return where.text.plain[quantity.end : following.start].strip(" *") in ("and", ",", ", and", "or", "/", "then")


def condition_statements(where: Where, conditions: Sequence[Condition]) -> list[Statement]:
    """Return the weather that a text speaks of, with its place and its time."""
    found = []
    end = len(where.text.plain) + 1
    usual = _usual_sentences(where.text)
    for number, condition in enumerate(conditions):
        if usual and any(first <= condition.start < last for first, last in usual):
            continue
        following = conditions[number + 1].start if number + 1 < len(conditions) else end
        mention = condition.start, condition.end
        heads: Sequence[Span] = ()
        if "|" in where.text.said:
            heads = heads_of(where.text, bisect_left(where.text.starts, condition.start))
        place = where.told(where.places, mention, following, heads)
        day = where.told(where.days, mention, following, heads)
        found.append(
            Statement(
                None,
                where.days.value(day, condition.start),
                where.places.value(place, condition.start),
                condition.start,
                condition.end,
                condition.word,
                condition=condition,
            )
        )
    return found


def _usual_sentences(text: Text) -> list[tuple[int, int]]:
    """Return from where to where a text says what is usual, rather than what is."""
    marks = [place for word in text.said & _USUAL for place in text.index[word]]
    marks += [at for at in text.index.get("typical", ()) if text.word_at(at + 1) not in ("for", "of")]
    found = []
    for place in marks:
        first = last = place
        while (
            first > max(place - _MOST_IN_A_SENTENCE, 0)
            and text.words[first - 1] not in SENTENCE_ENDS
            and text.words[first - 1] not in ("but", "now")
        ):
            first -= 1
        while (
            last < min(place + _MOST_IN_A_SENTENCE, len(text.words))
            and text.words[last] not in SENTENCE_ENDS
            and text.words[last] not in ("but", "now")
        ):
            last += 1
        found.append((text.starts[first], text.start_of(last)))
    return found
