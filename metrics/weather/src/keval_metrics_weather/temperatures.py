"""Temperatures: every temperature a text states, in degrees Celsius, with what it is the temperature of."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from keval_metrics_weather.numerals import numeral_before
from keval_metrics_weather.words import Text, word_set

__all__ = ["Kind", "Temperature", "temperatures"]

Kind: TypeAlias = Literal["plain", "high", "low", "felt"]
"""`felt` is everything that is not the air's own temperature at a time: feels like, wind chill, dew point, the sea's,
an average or a bound ("below 10 °C")."""

_UNIT = (
    r"(?:\*{0,2} ?(?:°|℃|℉|deg(?:ree)?s?\b)(?: ?(?:celsius|centigrade|fahrenheit|c|f)\b)?"
    r"| ?(?:celsius|centigrade|fahrenheit)\b| ?[cf]\b(?!-[a-z]))"
)
_DECIMAL = r"\d{0,2}(?:[.,]\d{1,3})?(?!\d)"
# The digit comes first, and what must not stand before it after it: so the search can jump from digit to digit.
_NUMBER = re.compile(
    rf"(\d(?<!\w\d)(?<!\d[-–/:.,]\d){_DECIMAL})({_UNIT})?"
    rf"(?:( ?[-–−/] ?| (?:to|and|through) )((?:minus |[-–−])?\d{_DECIMAL})({_UNIT})?)?"
)
_AFTER = re.compile(
    r" ?(?:(?:degrees? )?(?P<below_zero>below (?:zero|0|freezing)\b)"
    r"|(?P<difference>(?:warmer|cooler|colder|hotter|higher|lower|above(?! zero)|below)\b))"
)
_COORDINATE = re.compile(r" ?(?:north|south|east|west|latitude|longitude|[nsew])\b")
_OTHER_QUANTITY = re.compile(
    r"\s?(?:%|percent|km|kph|mph|m/s|mm|cm|m\b|hpa|mb|mbar|a\.?m\b|p\.?m\b|h\b|hours?|min|days?|knots?|o'clock|[:/]\d"
    r"|st\b|nd\b|rd\b|th\b|ft|inch|out of|times)"
)
_QUALIFIER = re.compile(
    r"(?P<end>[;!?\n|(])|(?P<turn>(?:but|while|whereas)\b)"
    r"|(?P<felt>(?:feel(?:s|ing)?[-_ ]{1,2}(?:more |much |a bit )?(?:like|closer to|nearer to|colder|warmer|cooler)"
    r"|wind ?chill|heat index|humidex|real ?feel|dew ?point"
    r"|(?:apparent|perceived|water|sea|ocean|sea surface) temp(?:erature)?"
    r"|averages?(?: (?:daily|monthly|annual|high|low|max(?:imum)?|min(?:imum)?)){0,2})(?:[-_ ]temp(?:erature)?s?)?)"
    r"|(?P<high>highs?\b(?! (?:pressure|humidity|winds?|chance|uv|level))|h: ?$|max(?:imum)?\b|peak|reach"
    r"|up to\b|climb|ris(?:e|es|ing) to\b|warming (?:up )?to\b|top(?:s|ping) out\b)"
    r"|(?P<low>lows?\b(?! (?:pressure|humidity|clouds?|chance|visibility|level))|l: ?$|min(?:imum)?\b"
    r"|down to\b|(?:drop|dip|fall|cool)(?:s|ping|ing)? (?:down )?to\b|overnight\b)"
    r"|(?P<plain>temp(?:erature)?s?\b|actual|at\b|air\b)"
)
# What the words and marks of that pattern begin with, at most three letters: all others are passed over at once.
_QUALIFYING = word_set(
    "but whi whe fee win hea hum rea dew app per wat sea oce ave hig h max pea up cli ris war top low l min dow dro dip"
    " fal coo ove tem act at air"
) | frozenset(";!?\n|(")
_QUALIFIED_AFTER = re.compile(
    r" ?\(?(?:(?P<high>(?:high|max(?:imum)?)s?)|(?P<low>(?:low|min(?:imum)?)s?)"
    r"|(?P<felt>feels[- ]like|(?:with (?:the )?)?(?:wind ?chill|heat index)|dew ?point))\b"
    r"(?! ?[:\d]| (?:of|is|near|around|about|pressure)\b)"
)
_BARE = re.compile(
    r"(?:\btemp(?:erature)?s?|\bhighs?|\blows?|\bmax(?:imum)?|\bmin(?:imum)?)(?: temp(?:erature)?s?)?"
    r"\*{0,2}[:=]?\*{0,2}"
    r"(?: (?:of|is|was|at|will be|be|around|about|approximately|near|currently|between|from|reaching|stands at|only"
    r"|just|roughly|range|ranging|minus|negative)){0,4} ?[-–−]?$"
)
_NEVER_AN_AIR_TEMPERATURE = re.compile(
    r"\b(?:by|within|direction|bearing|latitude|longitude|angle|coordinates|winds? (?:from|at))\b[^\d]{0,12}$"
)
_AN_INDEX = re.compile(r"\b(?:uv|aqi|air quality|pollen)\b(?:(?! (?:and|with) )[^.,;\n|(]){0,32}$")
_INDICES = frozenset({"uv", "aqi", "quality", "pollen"})
_NEARLY = re.compile(r"\b(?:just|slightly|little|bit) \w{4,5} $")
_BOUNDS = ("below ", "above ", "under ", "over ", "than ")
_BEFORE_A_BARE_NUMBER = word_set("temperature temperatures temp temps high highs low lows max maximum min minimum")
_BEFORE_NO_AIR_TEMPERATURE = word_set("by within direction bearing latitude longitude angle coordinates wind winds")
_SIGNS = ("minus ", "negative ", "−", "− ")
_KINDS: dict[str | None, Kind] = {"felt": "felt", "high": "high", "low": "low"}
_WINDOW = 48
_HOTTEST_CELSIUS = 60.0
_HOTTEST_FAHRENHEIT = 140.0

_SCALE_WORDS = frozenset({"degree", "degrees", "celsius", "fahrenheit", "below"})


# Named tuples, as attrs records take twice as long to make, and an answer has many.
class Temperature(NamedTuple):
    """A temperature from `low` to `high` in °C (the same number unless a range), as `said` at offset `start`.

    `converted` says that it was stated in Fahrenheit.
    """

    low: float
    high: float
    kind: Kind
    start: int
    said: str
    converted: bool = False

    @property
    def is_range(self) -> bool:
        return self.low != self.high


class _Reading(NamedTuple):
    numbers: tuple[float, ...]
    unit: str
    start: int
    end: int


def temperatures(text: Text, fahrenheit: bool = False) -> tuple[Temperature, ...]:
    """Return the temperatures a text states, in its order.

    Degrees without a scale are Celsius, unless the text only ever names Fahrenheit, `fahrenheit` says that it was
    asked for, or the number is too hot to be Celsius on Earth.
    """
    return _temperatures(text, fahrenheit)


@lru_cache(maxsize=32)
def _temperatures(text: Text, fahrenheit: bool) -> tuple[Temperature, ...]:
    readings = [kept for reading in (*_digits(text), *_numerals(text)) if (kept := _kept(text, reading)) is not None]
    readings.sort(key=attrgetter("start"))
    scales = {reading.unit for reading in readings}
    assumed = "f" if "c" not in scales and (fahrenheit or "f" in scales) else "c"
    found = []
    previous_end = 0
    for numbers, stated, start, end in readings:
        unit = stated or ("f" if max(numbers) > _HOTTEST_CELSIUS else assumed)
        values = [round((n - 32) / 1.8, 2) for n in numbers] if unit == "f" else numbers
        said = " ".join(text.original[start:end].replace("*", "").split())
        kind = _kind(text, previous_end, start, end)
        found.append(Temperature(min(values), max(values), kind, start, said, unit == "f"))
        previous_end = end
    return tuple(found)


def _scale(unit: str) -> str:
    """Return `c`, `f` or, for degrees without a scale, an empty text."""
    if "c" in unit or "℃" in unit:  # no other letter of a unit is a c or an f
        return "c"
    return "f" if "f" in unit or "℉" in unit else ""


def _signed(plain: str, start: int, digits: str) -> tuple[int, float]:
    """Return where a number begins, its minus sign included, and its value."""
    before = plain[max(start - 9, 0) : start]
    if before.endswith(_SIGNS):
        return start - next(len(sign) for sign in _SIGNS if before.endswith(sign)), -_value(digits)
    if before.endswith(("-", "–")) and not (before[-2:-1].isalnum() or before[-2:-1] in (")", "°", "%")):
        return start - 1, -_value(digits)
    return start, _value(digits)


def _value(number: str) -> float:
    """Return a number as written, with its sign and decimal point or comma."""
    digits = number.lstrip("minus -–−").replace(",", ".")
    return float(digits) * (1.0 if number[0].isdecimal() else -1.0)


def _is_unit(text: Text, start: int, unit: str | None) -> bool:
    """Say whether what follows a number is a temperature's unit; a lone letter after a space must be a capital."""
    if not unit:
        return False
    return not (len(unit) == 2 and unit[0] == " " and unit[1] in "cf" and text.original[start + 1].islower())


def _digits(text: Text) -> Iterator[_Reading]:
    """Read the temperatures written with digits: with a unit, or after a word such as "high"."""
    plain = text.plain
    bare = not text.said.isdisjoint(_BEFORE_A_BARE_NUMBER)
    below = "below" in text.said
    for found in _NUMBER.finditer(plain):
        first, first_unit, joint, second, second_unit = found.groups()
        has_first = _is_unit(text, found.end(1), first_unit)
        has_second = second is not None and _is_unit(text, found.end(4), second_unit)
        named = not has_first and (
            (bare and _named(text, found.start())) or (below and _below_zero(plain, found.end(1)))
        )
        if not (has_first or has_second or named):
            continue
        start, value = _signed(plain, found.start(), first)
        ranged = joint is not None and (joint != " and " or "between" in plain[max(start - 20, 0) : start])
        if has_second and ranged and (not has_first or _scale(first_unit) in ("", _scale(second_unit))):
            yield _Reading((value, _value(second)), _scale(second_unit), start, found.end())
            continue
        if has_first:
            yield _Reading((value,), _scale(first_unit), start, found.end(2))
        elif named:
            end = found.end() if ranged else found.end(1)
            if not _OTHER_QUANTITY.match(plain, end):
                yield _Reading((value, _value(second)) if ranged else (value,), "", start, end)
        if has_second:
            yield _Reading((_value(second),), _scale(second_unit), found.start(4), found.end())


def _named(text: Text, start: int) -> bool:
    """Say whether a word such as "high" makes a number a temperature, unless it is an index: "UV is high at 7"."""
    begin = max(start - _WINDOW, 0)
    if not _BARE.search(text.plain, begin, start):
        return False
    return text.said.isdisjoint(_INDICES) or not _AN_INDEX.search(text.plain, begin, start)


def _below_zero(plain: str, end: int) -> bool:
    after = _AFTER.match(plain, end)
    return after is not None and after["below_zero"] is not None


def _kept(text: Text, reading: _Reading) -> _Reading | None:
    """Return a reading, made negative by "below zero", unless it is a difference, a direction or beyond all weather."""
    plain = text.plain
    after = _AFTER.match(plain, reading.end)
    if after:
        below_zero = reading._replace(numbers=tuple(-abs(n) for n in reading.numbers), end=after.end())
        return below_zero if after["below_zero"] else None
    if not reading.unit and (max(reading.numbers) > _HOTTEST_FAHRENHEIT or _COORDINATE.match(plain, reading.end)):
        return None
    suspect = not text.said.isdisjoint(_BEFORE_NO_AIR_TEMPERATURE)
    if suspect and _NEVER_AN_AIR_TEMPERATURE.search(plain, max(reading.start - 24, 0), reading.start):
        return None
    return reading


def _numerals(text: Text) -> Iterator[_Reading]:
    """Read the temperatures written in words: "minus five degrees", "between three and seven degrees Celsius"."""
    for word in text.said & _SCALE_WORDS:
        for place in text.index[word]:
            number = numeral_before(text, place)
            if number is None:
                continue
            value, first = number
            values = [value]
            if text.word_at(first - 1) in ("to", "and", "or"):
                lower = numeral_before(text, first - 1)
                if lower is not None:
                    values.insert(0, lower[0])
                    first = lower[1]
            unit = next((w[0] for w in (word, text.word_at(place + 1)) if w in ("celsius", "fahrenheit", "c", "f")), "")
            end = text.starts[place] + (len(word) if word != "below" else 0)
            yield _Reading(tuple(values), unit, text.starts[first], end)


def _kind(text: Text, previous_end: int, start: int, end: int) -> Kind:
    """Say what a temperature is the temperature of, from the words right after and before it."""
    plain = text.plain
    after = _QUALIFIED_AFTER.match(plain, end)
    if after:
        return "high" if after["high"] else "low" if after["low"] else "felt"
    if plain.endswith(_BOUNDS, max(start - 6, 0), start) and not _NEARLY.search(plain, max(start - 16, 0), start):
        return "felt"
    begin = max(previous_end, start - _WINDOW)
    begin = max(begin, plain.rfind(". ", begin, start), plain.rfind(", ", begin, start))
    kind: Kind = "plain"
    for place in range(bisect_left(text.starts, begin), bisect_left(text.starts, start)):
        at = text.starts[place]
        if text.words[place][:3] not in _QUALIFYING or at < begin:
            continue
        found = _QUALIFIER.match(plain, at, start)
        if found is None:
            continue
        begin = found.end()  # the next words may be part of the match: "water temperature"
        group = found.lastgroup
        if group in _KINDS:
            kind = _KINDS[group]
        elif group != "plain" or kind == "felt":
            kind = "plain"  # a clause ends, or "feels like winter with a temperature of 3 °C"
    return kind
