"""Temperatures: finds the numbers of a text that are temperatures, in digits or words, and converts them to °C."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from keval_metrics_weather.reading.tables import cells
from keval_metrics_weather.reading.words import Text, any_of, before, matches, vocabulary, word_set

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMERALS = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
_BELOW_A_HUNDRED = rf"(?:{any_of(_TENS)} {any_of(_ONES[1:10])}|{any_of(_NUMERALS)})"
_NUMERAL = (
    rf"(?:minus |negative )?(?:(?:a|{any_of(_ONES[1:10])}) hundred(?: (?:and )?{_BELOW_A_HUNDRED})?|{_BELOW_A_HUNDRED})"
    rf"(?: point {any_of(_ONES[:10])})?"
)
_SPOKEN = re.compile(
    r"(?<! hundred)(?<! thousand)(?<! point)(?<! hundred and)(?<! thousand and)"
    rf" (?P<numeral>(?:{_NUMERAL} (?:to|and|or) )??{_NUMERAL})(?= (?:degrees?|celsius|fahrenheit|below) )"
)
_ENDS = re.compile(rf"(?:({_NUMERAL}) (?:to|and|or) )??({_NUMERAL})")
_TENS_OF_BANDS = {
    "teens": 10, "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70,
    "eighties": 80,
}  # fmt: skip
_PARTS = {"low": (0, 3), "lower": (0, 3), "mid": (4, 6), "middle": (4, 6), "high": (7, 9), "upper": (7, 9)}
_BAND = re.compile(
    rf" (?P<band>(?:minus |negative )?(?:(?:to|{any_of(_PARTS)}) ){{0,3}}"
    rf"(?:{any_of(_TENS_OF_BANDS)}|[1-9]0s|1[01]0s))(?= )"
)


def _numeral(said: str) -> float:
    """Return the number that words say: "minus a hundred and five point two"."""
    whole, _, tenth = said.partition(" point ")
    value = 0.0
    for word in whole.split():
        value = max(value, 1) * 100 if word == "hundred" else value + _NUMERALS.get(word, 0)
    value += _NUMERALS[tenth] / 10 if tenth else 0
    return -value if said.startswith(_SPOKEN_SIGNS) else value


def _band(words: Sequence[str]) -> tuple[float, float]:
    """Return the range that "mid-30s" or "high teens" means."""
    tens = _TENS_OF_BANDS.get(words[-1]) or int(words[-1][:-1])
    parts = [_PARTS[word] for word in words if word in _PARTS] or [(0, 9)]
    ends = tens + max(min(parts)[0], 3 if words[-1] == "teens" else 0), tens + max(high for _, high in parts)
    return (-ends[1], -ends[0]) if f"{words[0]} " in _SPOKEN_SIGNS else ends


_AN_INDEX = re.compile(r"\b(?:uv|aqi|air quality|pollen)\b(?:(?! (?:and|with) )[^.,;\n|(]){0,32}$")
NAMING = frozenset(vocabulary("naming"))
_WEEKDAYS = word_set(
    "mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday"
)
_LINKING = frozenset(vocabulary("linking"))
_MOST_LINKS = 6
_NAMED = re.compile(rf" (?:{any_of(NAMING - {'index'})}|heat index) (?:{any_of(_LINKING)} ){{0,{_MOST_LINKS}}}$")


_NO_UNIT = re.compile(
    r" (?:and|with|in|on|at|by|for|but|or|then|right|now|today|tonight|tomorrow|as|so|under|overnight|the|to|while|this"
    r"|out|outside|there|here|near|around|during|after|before|once|though|even|if|is|was|when|followed|dropping|lo|low|hi|high|max|min)\b"
)


def is_named(text: Text, start: int) -> bool:
    """Say whether a word such as "high" makes a number a temperature, unless it is an index: "UV is high at 7"."""
    named = _NAMED.search(before(text, bisect_left(text.starts, start), _MOST_LINKS + 2))
    return named is not None and not _AN_INDEX.search(text.plain, max(start - 48, 0), start)


def is_day_and_night(text: Text, start: int) -> bool:
    """Say whether a pair such as "Mon 17/24" in a list of degrees is a day's span."""
    day = text.padded[bisect_left(text.starts, start) - 1]
    return (day in _WEEKDAYS or day.isdecimal()) and "°" in text.plain and not text.said.isdisjoint(_WEEKDAYS)


UNIT = (
    r"(?:\*{0,2} ?(?:°|℃|℉|deg(?:ree)?s?\b)(?: ?(?:celsius|centigrade|fahrenheit|c|f)\b)?"
    r"| ?(?:celsius|celcius|centigrade|fahrenheit)\b| ?[cf]\b(?!-[a-z]))"
)
_DECIMAL = r"\d{0,2}(?:[.,]\d{1,3})?(?!\d)"
_JOINT = r"\*{0,2}(?: ?(?:[-–−/~→…]|\.\.\.?) ?| (?:to|and|through|or) )\*{0,2}"
# The digit comes first, and what must not stand before it after it: so the search can jump from digit to digit.
_NUMBER = re.compile(
    rf"(\d(?<!\w\d)(?<!\d[-–/:.,]\d){_DECIMAL})({UNIT})?"
    rf"(?:({_JOINT})((?:minus |[-–−+])?\d{_DECIMAL})({UNIT})?)?"
)
_AFTER = re.compile(
    r"\*{0,2} ?(?:(?:degrees? )?(?P<below_zero>below (?:zero|0|freezing)\b)"
    r"|(?P<difference>(?:warmer|cooler|colder|hotter|milder|higher|lower|more|less|above(?! (?:zero|0))|below"
    r"|(?:drop|rise|swing|jump|difference|increase|decrease)s?)\b))"
)
_COORDINATE = re.compile(r" ?(?:north|south|east|west|latitude|longitude|[nsew])\b")
_OTHER_QUANTITY = re.compile(
    r"\s?(?:[a-z]\S|%|percent|km|kph|mph|m/s|mm|cm|m\b|hpa|mb|mbar|a\.?m\b|p\.?m\b|h\b|hours?|min|days?|knots?|o'clock"
    r"|[:/]\d|st\b|nd\b|rd\b|th\b|ft|inch|out of|times|[a-z]\b)"
)
_NEVER_AN_AIR_TEMPERATURE = re.compile(
    r"\bby(?: (?:about|around|some|nearly|up to|roughly|minus))? ?[-–−]?$"
    r"|\b(?:within|direction|bearing|latitude|longitude|angle|coordinates|winds? (?:from|at)"
    r"|(?:difference|rise|drop|swing|jump|increase|decrease|change) of)\b[^\d]{0,12}$"
)
_SIGNS = ("minus ", "negative ", "−", "− ")
_SPOKEN_SIGNS = ("minus ", "negative ")
_HOTTEST_FAHRENHEIT = 140.0


class Figure(NamedTuple):
    """A number, or the two ends of a range, with its `unit` (`c`, `f` or none) and where it stands."""

    numbers: tuple[float, ...]
    unit: str
    start: int
    end: int
    vague: bool = False


def _scale(unit: str) -> str:
    """Return `c`, `f` or, for degrees without a scale, an empty text."""
    if "c" in unit or "℃" in unit:  # no other letter of a unit is a c or an f
        return "c"
    return "f" if "f" in unit or "℉" in unit else ""


def _signed(plain: str, start: int, digits: str) -> tuple[int, float]:
    """Return where a number begins, its minus sign included, and its value."""
    before = plain[max(start - 9, 0) : start]
    if before.endswith(_SIGNS):
        return start - next(len(sign) for sign in _SIGNS if before.endswith(sign)), -value_of(digits)
    if before.endswith(("-", "–")) and not (before[-2:-1].isalnum() or before[-2:-1] in (")", "°", "%")):
        return start - 1, -value_of(digits)
    return start, value_of(digits)


def value_of(number: str) -> float:
    """Return a number as written, with its sign and decimal point or comma."""
    digits = number.lstrip("minus -–−+").replace(",", ".")
    return float(digits) * (1.0 if number[0].isdecimal() or number[0] == "+" else -1.0)


def _is_unit(text: Text, start: int, unit: str | None) -> bool:
    """Say whether what follows a number is a temperature's unit; a lone letter after a space must be a capital."""
    if not unit:
        return False
    return not (len(unit) == 2 and unit[0] == " " and unit[1] in "cf" and text.original[start + 1].islower())


def figures(text: Text) -> list[Figure]:
    """Return the numbers of a text that are degrees, in its order, whether written with digits or in words."""
    found = [kept for figure in (*_digits(text), *_numerals(text)) if (kept := _kept(text, figure)) is not None]
    found.sort(key=attrgetter("start"))
    return found


def _digits(text: Text) -> Iterator[Figure]:
    """Read the temperatures written with digits: with a unit, with "minus", or after a word such as "high"."""
    plain = text.plain
    for found in _NUMBER.finditer(plain):
        first, first_unit, joint, second, second_unit = found.groups()
        pair = False
        has_first = _is_unit(text, found.end(1), first_unit)
        has_second = second is not None and _is_unit(text, found.end(4), second_unit)
        named = not has_first and (
            is_named(text, found.start())
            or _below_zero(plain, found.end(1))
            or plain.endswith(_SPOKEN_SIGNS, 0, found.start())
            or (pair := joint is not None and "/" in joint and is_day_and_night(text, found.start()))
        )
        if not (has_first or has_second or named):
            continue
        start, value = _signed(plain, found.start(), first)
        ranged = joint is not None and (
            ("and" not in joint and "or" not in joint) or "between" in plain[max(start - 20, 0) : start]
        )
        if has_second and ranged and (not has_first or _scale(first_unit) in ("", _scale(second_unit))):
            yield Figure((value, value_of(second)), _scale(second_unit), start, found.end())
            continue
        if has_first:
            yield Figure((value,), _scale(first_unit), start, found.end(2))
        elif named:
            end = found.end() if ranged else found.end(1)
            if _below_zero(plain, end):
                yield Figure((value,), "", start, end)
            elif pair or _NO_UNIT.match(plain, end) or not _OTHER_QUANTITY.match(plain, end):
                yield Figure((value, value_of(second)) if ranged else (value,), "", start, end)
        if has_second:
            yield Figure((value_of(second),), _scale(second_unit), found.start(4), found.end())


def _below_zero(plain: str, end: int) -> bool:
    after = _AFTER.match(plain, end)
    return after is not None and after["below_zero"] is not None


def _kept(text: Text, figure: Figure) -> Figure | None:
    """Return a figure, made negative by "below zero", unless it is a difference, a direction or beyond all weather."""
    plain = text.plain
    after = _AFTER.match(plain, figure.end)
    if after:
        below_zero = figure._replace(numbers=tuple(-abs(n) for n in figure.numbers), end=after.end())
        return below_zero if after["below_zero"] else None
    if not figure.unit and (max(figure.numbers) > _HOTTEST_FAHRENHEIT or _COORDINATE.match(plain, figure.end)):
        return None
    if _NEVER_AN_AIR_TEMPERATURE.search(plain, max(figure.start - 24, 0), figure.start):
        return None
    return figure


def _numerals(text: Text) -> Iterator[Figure]:
    """Read the temperatures written in words: "minus five degrees", "a low of six", "in the mid-30s"."""
    for _, first, last in matches(text, _SPOKEN):
        ends = _ENDS.fullmatch(" ".join(text.words[first : last + 1]))
        if ends is None or text.padded[first - 1] in _NUMERALS:
            continue
        unit = next((w[0] for w in text.padded[last + 1 : last + 3] if w in ("celsius", "fahrenheit", "c", "f")), "")
        end = text.starts[last + 1] if text.words[last + 1] == "below" else text.ends[last + 1]
        yield Figure(tuple([_numeral(said) for said in ends.groups() if said]), unit, text.starts[first], end)
    for _, first, last in matches(text, _BAND):
        end = text.ends[last]
        after = re.match(UNIT, text.plain[end : end + 24])
        unit = _scale(after.group()) if after else ""
        end += after.end() if after else 0
        yield Figure(_band(text.words[first : last + 1]), unit, text.starts[first], end, vague=True)


_HOTTEST_CELSIUS = 56.0
_CELL = re.compile(r"\s{0,8}\*{0,2}([-–−+]?)(\d{1,3}(?:[.,]\d{1,2})?)\*{0,2}\s{0,8}$")
_SAME_AGAIN = re.compile(
    r"\*{0,2},?[^.;\n\d]{0,24}[(/|=≈]\s?\*{0,2}(?:(?:about|around|approx(?:imately)?\.?|roughly)\s)?[~≈]?\*{0,2}$"
    r"|\*{0,2},? (?:or|that is|which is) (?:about )?$"
)
_CLOSE_AGAIN = 2.5


# Named tuples, as attrs records take twice as long to make, and an answer has many.
class Quantity(NamedTuple):
    """A temperature from `low` to `high` in °C (the same number unless a range), as `said` from `start` to `end`.

    `converted` says that it was stated in Fahrenheit, `vague` that only its tens are told ("low 20s").
    """

    low: float
    high: float
    start: int
    end: int
    said: str
    converted: bool = False
    vague: bool = False

    @property
    def is_range(self) -> bool:
        return self.low != self.high


@lru_cache(maxsize=64)
def quantities(text: Text, fahrenheit: bool) -> tuple[Quantity, ...]:
    """Return the temperatures a text states, in its order; one that is told in both scales is one.

    Degrees without a scale are Celsius, unless the text only ever names Fahrenheit, `fahrenheit` says that it was
    asked for, or the number is too hot to be Celsius on Earth.
    """
    readings = figures(text)
    if not readings:
        return tuple(_in_cells(text, ())) if "|" in text.said else ()
    scales = {reading.unit for reading in readings}
    named = "f" in scales or "°f" in text.plain or "fahrenheit" in text.said
    assumed = "f" if "c" not in scales and (fahrenheit or (named and "°c" not in text.plain)) else "c"
    found: list[Quantity] = []
    for reading in readings:
        unit = reading.unit or ("f" if max(reading.numbers) > _HOTTEST_CELSIUS else assumed)
        values = [in_celsius(n) for n in reading.numbers] if unit == "f" else reading.numbers
        said = as_said(text, reading.start, reading.end)
        quantity = Quantity(min(values), max(values), reading.start, reading.end, said, unit == "f", reading.vague)
        if found and reading.start < found[-1].end:
            continue
        same = _same_again(text, found[-1], quantity) if found else None
        if same is not None:
            found[-1] = same
            if len(found) > 1 and (ranged := _range_of_both(text, found[-2], same)) is not None:
                found[-2:] = [ranged]
        else:
            found.append(quantity)
    if "|" in text.said:
        found = sorted([*found, *_in_cells(text, found)], key=attrgetter("start"))
    return tuple(found)


def _in_cells(text: Text, known: Sequence[Quantity]) -> Iterator[Quantity]:
    """Read the bare numbers in the cells of a table whose heads name a temperature: "| High (°C) |"."""
    starts = {quantity.start for quantity in known}
    for first, last, heads in cells(text):
        if not heads or not 0 < last - first < 4:
            continue
        matched = _CELL.match(text.plain, text.starts[first - 1] + 1, text.start_of(last))
        if matched is None or starts & {matched.start(1), matched.start(2)}:
            continue
        if NAMING.isdisjoint(word for a, b in heads for word in text.words[a:b]):
            continue
        value = value_of(matched[1] + matched[2])
        fahrenheit = any("°f" in text.plain[text.start_of(a - 1) : text.start_of(b)] for a, b in heads if a < b)
        said = text.original[matched.start(1) : matched.end(2)]
        value = in_celsius(value) if fahrenheit else value
        yield Quantity(value, value, matched.start(1), matched.end(2), said, fahrenheit)


def in_celsius(fahrenheit: float) -> float:
    """Return degrees Fahrenheit in Celsius."""
    return round((fahrenheit - 32) / 1.8, 2)


def as_said(text: Text, start: int, end: int) -> str:
    """Return a part of a text as it is quoted, without emphasis."""
    said = text.original[start:end]
    return " ".join(said.replace("*", "").split()) if "*" in said or not said.isascii() or "  " in said else said


def _range_of_both(text: Text, first: Quantity, last: Quantity) -> Quantity | None:
    """Join "between 9 °C (48 °F) and 18 °C (64 °F)", a range of which each end is told in two scales."""
    joint = text.plain[first.end : last.start].strip(" *)")
    before = text.plain[max(first.start - 12, 0) : first.start]
    if first.is_range or not (joint in ("to", "–", "-") or (joint == "and" and "between" in before)):
        return None
    low, high = sorted((first.low, last.low))
    said = f"{first.said} {joint} {last.said}"
    return last._replace(low=low, high=high, start=first.start, said=said)


def _same_again(text: Text, known: Quantity, quantity: Quantity) -> Quantity | None:
    """Join "48 °F (9 °C)": one temperature in two scales, as far as rounding goes."""
    if known.converted == quantity.converted or quantity.start - known.end > 40:
        return None
    if abs(known.low - quantity.low) > _CLOSE_AGAIN or abs(known.high - quantity.high) > _CLOSE_AGAIN:
        return None
    if not _SAME_AGAIN.match(text.plain, known.end, quantity.start):
        return None
    celsius = quantity if known.converted else known
    end = quantity.end
    if "(" in text.plain[known.end : quantity.start] and text.plain.startswith(")", end):
        end += 1
    return celsius._replace(start=known.start, end=end, said=as_said(text, known.start, end), vague=False)
