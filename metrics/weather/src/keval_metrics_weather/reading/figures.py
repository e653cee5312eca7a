"""Figures: the numbers of a text that are degrees, as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from keval_metrics_weather.reading.bare import NAMING, is_day_and_night, is_named, word_follows
from keval_metrics_weather.reading.numerals import band_at, numeral_before
from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["Figure", "figures", "value_of"]


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


_GOES_ON = re.compile(
    r"\s?(?:%|(?:percent|km|kph|mph|m/s|mm|cm|m|hpa|mbar|a\.?m|p\.?m|days?|hours?|minutes?)\b|[a-z:/])"
)


_NEVER_AN_AIR_TEMPERATURE = re.compile(
    r"\bby(?: (?:about|around|some|nearly|up to|roughly|minus))? ?[-–−]?$"
    r"|\b(?:within|direction|bearing|latitude|longitude|angle|coordinates|winds? (?:from|at)"
    r"|(?:difference|rise|drop|swing|jump|increase|decrease|change) of)\b[^\d]{0,12}$"
)
_BEFORE_NO_AIR_TEMPERATURE = word_set(
    "by within direction bearing latitude longitude angle coordinates wind winds difference rise drop swing jump"
    " increase decrease change"
)


_SIGNS = ("minus ", "negative ", "−", "− ")


_SPOKEN_SIGNS = ("minus ", "negative ")


_HOTTEST_FAHRENHEIT = 140.0


_SCALE_WORDS = frozenset({"degree", "degrees", "celsius", "fahrenheit", "below"})


_BANDS = frozenset({"teens", "twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties"}) | {
    f"{tens}s" for tens in range(10, 120, 10)
}


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
    bare = not text.said.isdisjoint(NAMING)
    below = "below" in text.said
    for found in _NUMBER.finditer(plain):
        first, first_unit, joint, second, second_unit = found.groups()
        pair = False
        has_first = _is_unit(text, found.end(1), first_unit)
        has_second = second is not None and _is_unit(text, found.end(4), second_unit)
        named = not has_first and (
            (bare and is_named(text, found.start()))
            or (below and _below_zero(plain, found.end(1)))
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
            if below and _below_zero(plain, end):
                yield Figure((value,), "", start, end)
            elif pair or word_follows(plain, end) or not _something_else(plain, end, start < found.start()):
                yield Figure((value, value_of(second)) if ranged else (value,), "", start, end)
        if has_second:
            yield Figure((value_of(second),), _scale(second_unit), found.start(4), found.end())


def _something_else(plain: str, end: int, signed: bool) -> bool:
    """Say whether what follows a number without a unit makes it another quantity; a sign rules most of them out."""
    return (_GOES_ON if signed else _OTHER_QUANTITY).match(plain, end) is not None


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
    suspect = not text.said.isdisjoint(_BEFORE_NO_AIR_TEMPERATURE)
    if suspect and _NEVER_AN_AIR_TEMPERATURE.search(plain, max(figure.start - 24, 0), figure.start):
        return None
    return figure


def _numerals(text: Text) -> Iterator[Figure]:
    """Read the temperatures written in words: "minus five degrees", "a low of six", "in the mid-30s"."""
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
            yield Figure(tuple(values), unit, text.starts[first], end)
    for word in text.said & _BANDS:
        for place in text.index[word]:
            low, high, first = band_at(text, place)
            after = re.match(UNIT, text.plain[text.starts[place] + len(word) :][:24])
            end = text.starts[place] + len(word) + (after.end() if after else 0)
            unit = _scale(after.group()) if after else ""
            yield Figure((low, high), unit, text.starts[first], end, vague=True)
