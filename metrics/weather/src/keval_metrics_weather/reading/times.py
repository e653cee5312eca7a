"""Times: the days that a text names, and the hours and parts of a day."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from keval_metrics_weather.reading.words import Text, any_of, matches, word_set

NOW = "now"
TODAY = "today"
TONIGHT = "tonight"
LATER = "later today"
SEVERAL = "several days"
PAST = "past"

PARTS_OF_DAY = frozenset({"morning", "noon", "afternoon", "evening", "tonight", "midnight"})
HOURS = PARTS_OF_DAY | word_set(
    "later midday daytime dawn sunrise dusk sunset breakfast lunchtime mornings afternoons evenings o'clock"
)
_CLOCK = re.compile(r"(\d(?<![\w:.,]\d)\d?)(?:[:.h](\d{2}))? ?(?:([ap])\.?m\b|(?<=[:h]\d\d)(?!\d)|o'clock\b)")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_WEEKDAYS = {
    name: number
    for number, names in enumerate(("mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun"))
    for name in names.split()
}
_MONTH_NAMES = (
    "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
    "september sep sept", "october oct", "november nov", "december dec",
)  # fmt: skip
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_SHORT_WEEKDAY_WORDS, _MONTH_WORDS = frozenset(_SHORT_WEEKDAYS), frozenset(_MONTHS)
_ISO = re.compile(r"\d(?<!\d\d)\d{3}-(\d{2})-(\d{2})(?!\d)")
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "sixth": 5, "seventh": 6}
_SMALL = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "couple": 2}
_COUNT = rf"(?:\d{{1,2}}|{any_of(_SMALL)})"
_DAY = any_of((*_WEEKDAYS, "weekend", "weekdays", "week", "days"))
_NAMED = re.compile(
    rf" (?:(?:last|previous|past|earlier) (?P<past>{_DAY})|(?P<past_>{_DAY}(?= ago ))"
    r"|(?P<past__>yesterday|last(?= (?:night|year|month|winter|summer|spring|autumn|time) ))"
    r"|(?P<now>now|currently|presently)|(?:the|this|at) (?P<now_>moment|present)"
    r"|(?P<now__>current)(?= (?:temperatures?|weather|conditions|readings?|temp) (?!forecast ))"
    r"|(?P<today>today)|(?P<tonight>tonight|this(?= (?:afternoon|evening|morning|night) ))"
    r"|day after (?P<after>tomorrow)|(?P<after_>overmorrow)|(?P<next>tomorrow|tmrw|tmr|tomorow)"
    rf"|in {_COUNT} (?P<ahead>days)|(?P<numbered>day)(?= {_COUNT} )|{any_of(_ORDINALS)} (?P<nth>day)"
    rf"|\d{{1,4}} (?P<several>day)|(?P<after__>day)(?= after (?!tomorrow ))"
    rf"|(?P<weekend>weekend)|(?P<several_>weekdays|weekly|week|days)|(?P<weekday>{any_of(_WEEKDAYS)}))(?= )"
)
_MEANT = {"past": PAST, "now": NOW, "today": TODAY, "tonight": TONIGHT, "after": "+2", "next": "+1"} | {
    "several": SEVERAL,
    "weekend": "weekend",
}
_AND_THE_NTH = re.compile(rf" on the (?P<nth>{any_of(_ORDINALS)}) (?!day )")
_SPANNING = frozenset({"to", "-", "–", "—", "through", "until"})


class Time(NamedTuple):
    """A day named at offset `start`.

    `day` is `now`, `today`, `tonight` (which stands for any part of today), `+1` (days from today), `weekday 5`
    (Saturday), `06-21`, `weekend`, `several days`, `past` or, from one to another, `weekday 0..weekday 4`.
    """

    start: int
    day: str


@lru_cache(maxsize=64)
def times(text: Text) -> tuple[Time, ...]:
    """Return the days a text names, in its order."""
    found = [Time(match.start(), f"{match[1]}-{match[2]}") for match in _ISO.finditer(text.plain)]
    named = [*matches(text, _NAMED)]
    found += [Time(text.starts[first], _meant(text, name.rstrip("_"), first)) for name, first, _ in named]
    if any(name == "nth" for name, _, _ in named):  # "the third day, on the fourth"
        ordinals = [first for _, first, _ in matches(text, _AND_THE_NTH)]
        found += [Time(text.starts[first], f"+{_ORDINALS[text.words[first]]}") for first in ordinals]
    for place in text.places_of(_SHORT_WEEKDAY_WORDS):
        if _abbreviates(text, place):
            found.append(Time(text.starts[place], f"weekday {_SHORT_WEEKDAYS[text.words[place]]}"))
    for place in text.places_of(_MONTH_WORDS):
        if number := _number_beside(text, place):
            found.append(Time(text.starts[place], f"{_MONTHS[text.words[place]]:02}-{number:02}"))
    found.sort(key=attrgetter("start"))
    return tuple(_joined(text, found)) if not _SPANNING.isdisjoint(text.said) else tuple(found)


def _meant(text: Text, name: str, place: int) -> str:
    """Return the day that a word means; one that is counted stands beside its number."""
    if name == "weekday":
        return f"weekday {_WEEKDAYS.index(text.words[place])}"
    if name == "nth":
        return f"+{_ORDINALS[text.words[place - 1]]}"
    if name in ("ahead", "numbered"):  # "in 2 days", but "day 2" is tomorrow
        word = text.words[place - 1 if name == "ahead" else place + 1]
        return f"+{(_SMALL.get(word) or int(word)) - (name == 'numbered')}"
    return _MEANT[name]


def _joined(text: Text, found: list[Time]) -> Iterator[Time]:
    """Join the two ends of "Monday to Friday" and "Sat–Sun" to one time, `weekday 0..weekday 4`."""
    number = 0
    while number < len(found):
        time, following = found[number], found[number + 1] if number + 1 < len(found) else None
        if following is not None and _spans(text, time, following):
            yield Time(time.start, f"{time.day}..{following.day}")
            number += 1
        else:
            yield time
        number += 1


def _spans(text: Text, first: Time, last: Time) -> bool:
    at, end = bisect_left(text.starts, first.start), bisect_left(text.starts, last.start)
    if end - at != 2 or PAST in (first.day, last.day):
        return False
    alike = first.day[:2].isdigit() == last.day[:2].isdigit() and first.day[:3] == last.day[:3]
    return text.words[at + 1] in _SPANNING and (text.words[at + 1].isalpha() or alike)


def day_name(day: str) -> str:
    """Return a day of `Time` as a reader would say it: `tomorrow`, `Saturday`."""
    first, spans, last = day.partition("..")
    if spans:
        return f"{day_name(first)} to {day_name(last)}"
    if day.startswith("weekday "):
        return _WEEKDAYS[int(day[-1])].capitalize()
    if day.startswith("+"):
        return "tomorrow" if day == "+1" else f"in {day[1:]} days"
    return day


def times_of_day(text: Text) -> frozenset[str]:
    """Return the parts of the day and the times by the clock that a text names, in one spelling each."""
    clock = {f"{int(hour)}:{minutes or '00'}{half or ''}" for hour, minutes, half in _CLOCK.findall(text.plain)}
    parts = {word for word in PARTS_OF_DAY & text.said if any(not _greets(text, at) for at in text.index[word])}
    return frozenset(parts) | clock


def _greets(text: Text, place: int) -> bool:
    """Say whether a part of the day is said in greeting: "Good morning!"."""
    return text.padded[place - 1] == "good" and text.padded[place + 1] in ("!", ",", ".", "\n", "")


def hours_named(text: Text) -> list[int]:
    """Return the offsets at which a text names an hour or a part of a day."""
    found = [text.starts[place] for place in text.places_of(HOURS)]
    return sorted([*found, *(match.start() for match in _CLOCK.finditer(text.plain))])


def _abbreviates(text: Text, place: int) -> bool:
    """Say whether a short word such as `Sat` stands for a weekday.

    It does when written in capitals with a date, a mark or another weekday beside it; one that is no other word does
    in lower case, too, and so do `sat` and `sun` side by side.
    """
    following, word = text.padded[place + 1], text.words[place]
    beside = {following, text.padded[place + 2], text.padded[place - 1], text.padded[place - 2]}
    if not beside.isdisjoint(_SHORT_WEEKDAY_WORDS) or not text.capitalised(place):
        return not beside.isdisjoint(_SHORT_WEEKDAY_WORDS) or word in ("tue", "tues", "thu", "thur", "thurs", "fri")
    sure = word not in ("sun", "sat", "wed", "mon")
    return sure or following in (":", ",", "|", "-", "–", "—", "\n", "") or following.isdecimal()


def _number_beside(text: Text, place: int) -> int:
    """Return the day of the month next to a month's name, 0 if none."""
    if text.words[place] in ("may", "march") and not text.capitalised(place):
        return 0
    for beside in (text.padded[place + 1], text.padded[place - 1], text.padded[place - 2]):
        digits = beside.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
        if digits.isdecimal() and len(digits) < 3 and 1 <= int(digits) <= 31:
            return int(digits)
    return 0
