"""Days: which day each part of a text is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from keval_metrics_weather.words import Text

__all__ = ["NOW", "PAST", "SEVERAL", "TODAY", "TONIGHT", "DayMention", "day_mentions", "day_name"]

NOW = "now"
TODAY = "today"
TONIGHT = "tonight"
SEVERAL = "several days"
PAST = "past"

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_WEEKDAYS = {
    "mon": 0,
    "tue": 1,
    "tues": 1,
    "wed": 2,
    "thu": 3,
    "thur": 3,
    "thurs": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
}
_MONTH_NAMES = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sep", "sept"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names}
_SIMPLE = {
    "now": NOW,
    "currently": NOW,
    "presently": NOW,
    "today": TODAY,
    "tonight": TONIGHT,
    "tomorrow": "+1",
    "overmorrow": "+2",
    "yesterday": PAST,
    "weekend": "weekend",
    "weekdays": SEVERAL,
    "week": SEVERAL,
    "days": SEVERAL,
} | {day: f"weekday {number}" for number, day in enumerate(_WEEKDAYS)}
_SIMPLE_WORDS, _SHORT_WEEKDAY_WORDS, _MONTH_WORDS = frozenset(_SIMPLE), frozenset(_SHORT_WEEKDAYS), frozenset(_MONTHS)
_TODAYS_PARTS = frozenset({"afternoon", "evening", "morning", "night"})
_MEASURED_NOW = frozenset({"temperature", "temperatures", "weather", "conditions", "reading", "readings"})
_ISO = re.compile(r"\d(?<!\d\d)\d{3}-(\d{2})-(\d{2})(?!\d)")
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "sixth": 5, "seventh": 6}
_SMALL = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


class DayMention(NamedTuple):
    """A day named at offset `start`.

    `day` is `now`, `today`, `tonight`, `+1` (days from today), `weekday 5` (Saturday), `06-21`, `weekend`,
    `several days` or `past`.
    """

    start: int
    day: str


@lru_cache(maxsize=64)
def day_mentions(text: Text) -> tuple[DayMention, ...]:
    """Return the days a text names, in its order."""
    found = []
    if "-" in text.plain:
        found += [DayMention(match.start(), f"{match[1]}-{match[2]}") for match in _ISO.finditer(text.plain)]
    for word in text.said & _SIMPLE_WORDS:
        found += [DayMention(*_simple(text, place, _SIMPLE[word])) for place in text.index[word]]
    for word in text.said & _SHORT_WEEKDAY_WORDS:
        found += [
            DayMention(text.starts[place], f"weekday {_SHORT_WEEKDAYS[word]}")
            for place in text.index[word]
            if _abbreviates(text, place)
        ]
    for word in text.said & _MONTH_WORDS:
        for place in text.index[word]:
            number = _number_beside(text, place)
            if number:
                found.append(DayMention(text.starts[place], f"{_MONTHS[word]:02}-{number:02}"))
    for place in text.index.get("this", ()):
        if text.word_at(place + 1) in _TODAYS_PARTS:
            found.append(DayMention(text.starts[place], TONIGHT))
    for place in (*text.index.get("moment", ()), *text.index.get("present", ())):
        if text.word_at(place - 1) in ("the", "this", "at"):
            found.append(DayMention(text.starts[place], NOW))
    for place in text.index.get("current", ()):
        if text.word_at(place + 1) in _MEASURED_NOW and text.word_at(place + 2) != "forecast":
            found.append(DayMention(text.starts[place], NOW))
    if "day" in text.index:
        found += _counted_days(text)
    found.sort(key=attrgetter("start"))
    return tuple(found)


def day_name(day: str) -> str:
    """Return a day of `DayMention` as a reader would say it: `tomorrow`, `Saturday`."""
    if day.startswith("weekday "):
        return _WEEKDAYS[int(day[-1])].capitalize()
    if day.startswith("+"):
        return "tomorrow" if day == "+1" else f"in {day[1:]} days"
    return day


def _counted_days(text: Text) -> Iterator[DayMention]:
    """Yield the days that are counted: "day 2", "a 5-day forecast", "the third day, on the fourth", "the day after"."""
    ordinals = False
    for place in text.index["day"]:
        start, before = text.starts[place], text.word_at(place - 1)
        number = _counted(text.word_at(place + 1))
        if number:
            yield DayMention(start, f"+{number - 1}")
        elif before.isdecimal():
            yield DayMention(start, SEVERAL)
        elif before in _ORDINALS:
            ordinals = True
            yield DayMention(start, f"+{_ORDINALS[before]}")
        elif text.word_at(place + 1) == "after" and text.word_at(place + 2) != "tomorrow":
            yield DayMention(start, "+2")
    for word in text.said & _ORDINALS.keys() if ordinals else ():
        for place in text.index[word]:
            if text.words[place - 2 : place] == ["on", "the"] and text.word_at(place + 1) != "day":
                yield DayMention(text.starts[place], f"+{_ORDINALS[word]}")


def _simple(text: Text, place: int, day: str) -> tuple[int, str]:
    """Refine what a single word says: "the day after tomorrow", "in two days", "last week"."""
    before = text.words[max(place - 2, 0) : place]
    if day == "+1" and before == ["day", "after"]:
        day = "+2"
    elif day == SEVERAL and before[:1] == ["in"] and text.words[place] == "days" and (n := _counted(before[-1])):
        day = f"+{n}"
    elif before[-1:] == ["last"] or text.word_at(place + 1) == "ago":
        day = PAST
    return text.starts[place], day


def _abbreviates(text: Text, place: int) -> bool:
    """Say whether a short word such as `Sat` stands for a weekday: capitalised, with a date or colon after it."""
    following = text.word_at(place + 1)
    sure = text.words[place] not in ("sun", "sat", "wed", "mon")
    return text.capitalised(place) and (sure or following in (":", ",", "|", "-", "–", "—") or following.isdecimal())


def _counted(word: str) -> int:
    return int(word) if word.isdecimal() and len(word) < 3 else _SMALL.get(word, 0)


def _number_beside(text: Text, place: int) -> int:
    """Return the day of the month next to a month's name, 0 if none."""
    if text.words[place] in ("may", "march") and not text.capitalised(place):
        return 0
    for beside in (text.word_at(place + 1), text.word_at(place - 1), text.word_at(place - 2)):
        digits = beside.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
        if digits.isdecimal() and len(digits) < 3 and 1 <= int(digits) <= 31:
            return int(digits)
    return 0
