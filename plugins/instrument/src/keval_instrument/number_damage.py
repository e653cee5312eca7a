"""Numbers of an answer, and other ones in their place: of the same form, and wrong whatever is rounded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Literal, TypeAlias

import attrs

from keval_instrument.answer_parts import outside_blocks

Form: TypeAlias = Literal["amount", "percent", "degrees", "day", "year", "date", "time", "version", "word"]

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH = rf"(?:{_MONTHS}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
_UNIT = "[kMGT]i?B|[kMGT]?bps|[kMGTm]?Hz|[kcmµn]?m|km/h|m/s|mph|k?g|[mµ]?s|min|h|d|[kM]?Wh?|V|A|x|[kMK]|px|pm|am|°?[CF]"
_DURATIONS = "second|minute|hour|day|week|month|year|byte|time|character|line|file|item|step|degree|percent"
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = re.compile(
    r"(?<![\w-])(?P<date>\d{4}-\d{2}-\d{2})(?!\d|-\d)"
    r"|(?<![\w.:])(?P<time>\d{1,2}:\d{2})(?::\d{2})?(?![\w:])"
    r"|(?<![\w.,])(?P<version>v?\d+(?:\.\d+){2,})(?![\w-])"
    rf"|(?<![A-Za-zÀ-ɏ0-9_.,/\\\\@])(?<![A-Za-zÀ-ɏ_]-)(?<!\d:)"
    rf"(?P<amount>\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?!\d)|\d+(?:[.,]\d+)*)"
    rf"(?=(?:{_UNIT})?(?![A-Za-zÀ-ɏ0-9_/]|[.,:]\d|-[A-Za-z]{{0,3}}\d))"
    rf"|(?<![\w-])(?P<word>(?i:{'|'.join(_WORDS[1:])}))(?= (?:{_DURATIONS})s?\b)"
    rf"|(?<![\w-])(?P<words>(?i:{'|'.join(_WORDS[2:])}))(?= (?!always|unless|this|plus|perhaps)[a-z]{{3,}}s\b)"
)
_NUMBERING = re.compile(r"^[ \t>]*\d{1,3}[.)][ \t]|^[ \t]*(?:Step|Schritt) \d+", re.MULTILINE)
_EXAMPLE = re.compile(r"(?:\b(?:such as|e\.g\.|for example|for instance|zum Beispiel|z\. ?B\.))[^.;\n)]*")
_UPWARDS = re.compile(
    r"(?:\bat least|\bmore than|\bover|\bno (?:fewer|less) than|\bexceed\w*|\bminimum of) +$", re.IGNORECASE
)
_DOWNWARDS = re.compile(
    r"(?:\bat most|\bup to|\bunder|\bwithin|\bno more than"
    r"|\b(?:less|fewer|larger|greater|older|longer|higher|bigger) than) +$",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[A-Za-zÀ-ɏ_][\w.-]*-$")
_OF_A_PROGRAM = re.compile(r"\b(?i:version|release|python|node(?:\.js)?|java|ruby|php|django|postgres\w*|mysql) $")
_IN_A_YEAR = "in|since|from|until|till|by|of|year|before|after|im|seit"
_FACTORS = (0.4, 0.5, 0.6, 0.7, 1.4, 1.5, 1.6, 1.8, 2.0, 2.4)
_LEAST = 0.25
"""The share of a number by which the one in its place differs at least."""
_LEAST_DEGREES = 3


@attrs.frozen
class Number:
    """A number in a text, from offset `start` to `end`: as it is written, and what kind of number it is.

    `direction` is 1 or -1 where only a larger or a smaller one is wrong, as after "at least" or "at most". `unit` is
    the noun that follows a 1, with the space before it, which has to become a plural.
    """

    start: int
    end: int
    text: str
    form: Form
    direction: int = 0
    unit: str = ""


def numbers(text: str) -> list[Number]:
    """Return the numbers that state something, those in code blocks only where there are no others.

    Numbers of lists, in names such as `SHA-256` and addresses, and of examples state nothing.
    """
    ignored = [*_NUMBERING.finditer(text), *_EXAMPLE.finditer(text)]
    found = [
        number
        for number in (_number(text, match) for match in _NUMBER.finditer(text))
        if not any(each.start() <= number.start < each.end() for each in ignored)
        and not _JOINED.search(text[max(0, number.start - 24) : number.start])
    ]
    outside = outside_blocks(text)
    return [number for number in found if not outside[number.start].isspace()] or found


def _number(text: str, match: re.Match[str]) -> Number:
    group = "word" if match["words"] else match.lastgroup
    start, end = match.span(match.lastgroup or 0)
    said, before, after = text[start:end], text[max(0, start - 24) : start], text[end : end + 24]
    direction = 1 if _UPWARDS.search(before) else -1 if _DOWNWARDS.search(before) else 0
    unit = re.match(rf" (?:{_DURATIONS})\b", after) if said.lower() in ("1", "one") else None
    return Number(start, end, said, _form(group or "", said, before, after), direction, unit[0] if unit else "")


def _form(group: str, said: str, before: str, after: str) -> Form:
    if group in ("date", "time", "version", "word"):
        return group  # type: ignore[return-value]
    if re.fullmatch(r"\d+\.\d+", said) and _OF_A_PROGRAM.search(before):
        return "version"
    if re.match(r"[ \u00a0\u202f]?(?:%|percent\b|per cent\b|Prozent\b)", after):
        return "percent"
    if re.match(r"[ \u00a0\u202f]?(?:°|degrees\b|Grad\b)|[CF]\b", after):
        return "degrees"
    is_dated = re.match(rf"\.? (?:of )?{_MONTH}(?!\w)", after) or re.search(rf"(?<!\w){_MONTH} $", before)
    if is_dated and said.isdigit() and 1 <= int(said) <= 31:
        return "day"
    if re.fullmatch(r"(?:19|20)\d\d", said) and re.search(rf"(?:\b(?i:{_IN_A_YEAR})|{_MONTH}|\d,) $", before):
        return "year"
    return "amount"


def changed(number: Number, rng: Random, taken: Collection[str], least: float = 0, most: float = 0) -> str | None:
    """Return another number of the same form that is none of those `taken`; `None` if there is none.

    With `least` or `most` the other one is above or below that, if one can be: the ends of a range keep their order.
    """
    candidates = [each for each in _candidates(number) if each != number.text and each not in taken]
    amount = value(number.text)
    if amount is not None:
        values = {each: value(each) or 0.0 for each in candidates}
        if number.direction:
            candidates = [each for each in candidates if (values[each] > amount) == (number.direction > 0)]
        ordered = [each for each in candidates if least < values[each] < (most or values[each] + 1)]
        candidates = ordered or candidates
    return rng.choice(candidates) if candidates else None


def value(text: str) -> float | None:
    """Return the value of an amount, with a comma or a point before its decimals; `None` if it is none."""
    if text.lower() in _WORDS:
        return float(_WORDS.index(text.lower()))
    plain = re.sub(r"(?<=\d)[., \u00a0\u202f](?=\d{3}(?!\d))", "", text)
    return float(plain.replace(",", ".")) if re.fullmatch(r"\d+(?:[.,]\d+)?", plain) else None


def _candidates(number: Number) -> Iterator[str]:
    said = number.text
    match number.form:
        case "word":
            at = _WORDS.index(said.lower())
            words = [word for place, word in enumerate(_WORDS) if place >= 2 and abs(place - at) >= max(1, at // 3)]
            yield from (word.capitalize() if said[0].isupper() else word for word in words)
        case "year":
            yield from (str(int(said) + step) for step in (-7, -5, -4, -3, 3, 4, 5, 7))
        case "day":
            yield from (str(day) for day in range(2, 29) if abs(day - int(said)) >= 3)
        case "date":
            yield from (f"{said[:-2]}{day:02}" for day in range(1, 29) if abs(day - int(said[-2:])) >= 3)
        case "time":
            hour, _, minute = said.partition(":")
            hours = [each for each in range(1, 13 if int(hour) <= 12 else 24) if abs(each - int(hour)) >= 2]
            yield from (f"{each:0{len(hour)}}:{minute}" for each in hours)
        case "version":
            *rest, last = said.split(".")
            yield from (".".join([*rest, str(int(last) + step)]) for step in (-3, -2, 2, 3, 4) if int(last) + step >= 0)
        case _:
            yield from _amounts(number)


def _amounts(number: Number) -> Iterator[str]:
    """Yield amounts with as many decimals, and as round, as the one that is written."""
    digits, whole = re.sub(r"\D", "", number.text), value(number.text) or 0.0
    amount = int(digits)
    round_to = 10 ** (len(digits) - len(digits.rstrip("0")) if amount else len(digits) - 1)
    round_to = min(round_to, 10) if number.form == "percent" else round_to
    base = amount // round_to
    if number.form == "degrees":
        # One that is a degree or two off may pass as rounded, or as measured a little later.
        degree = 10 ** (len(digits) - len(str(int(whole))) if re.search(r"[.,]", number.text) else 0)
        steps = (-1, 1, 2) if round_to > degree else [step * degree // round_to for step in (-6, -4, 4, 5, 6, 8)]
        others = {base + step for step in steps}
    else:
        others = {round(base * factor) for factor in _FACTORS} | {base + step for step in (2, 3, 4, 5) if base < 10}
    least = _LEAST_DEGREES if number.form == "degrees" else _LEAST * whole
    for other in sorted(each for each in others if each >= 0):
        text = _written(other * round_to, number.text)
        found = value(text) if text else None
        if text is None or found is None or (found <= 1 and found == int(found)):
            continue
        if abs(found - whole) >= least and (number.form != "percent" or whole > 100 or found <= 100):
            yield text


def _written(amount: int, like: str) -> str | None:
    """Write digits with the points, commas and spaces of a number; `None` if they are too few or too many for it."""
    marks = [(len(re.sub(r"\D", "", like[at:])), mark) for at, mark in enumerate(like) if not mark.isdigit()]
    long = len(re.sub(r"\D", "", like))
    digits = str(amount).zfill(long if like[0] == "0" or marks else 0)
    if len(digits) > long and any(right >= 3 for right, _ in marks):
        return None
    for right, mark in sorted(marks):
        at = len(digits) - right - sum(other < right for other, _ in marks)
        digits = f"{digits[:at]}{mark}{digits[at:]}"
    padded = digits[0] == "0" != like[0] and (digits[1:2].isdigit() or any(right >= 3 for right, _ in marks))
    return None if padded else digits


def damaged(text: str, question: str, rng: Random, *, every: bool) -> tuple[str, list[str]] | None:
    """Return a text with one number changed, or each, and what was changed; `None` if that cannot be done.

    One that the question does not have is preferred. A number that is written several times is changed each time. Where
    each is to be changed, there have to be two.
    """
    found = numbers(text)
    distinct = list(dict.fromkeys(number.text for number in found))
    if not every:
        new = [said for said in distinct if not re.search(rf"(?<![\d.,]){re.escape(said)}(?!\d)", question)]
        distinct = rng.sample(new or distinct, len(new or distinct))
    # A number that the text or the question has elsewhere might be right in this place, too.
    taken, other = {*re.findall(r"\d+(?:[.,:]\d+)*", f"{text} {question}"), *distinct}, dict[str, str]()
    for said in distinct:
        at = next(place for place, number in enumerate(found) if number.text == said)
        ends = _ends(text, found[max(0, at - 1) : at + 2], found[at], other)
        if (new_text := changed(found[at], rng, taken | {*other.values()}, *ends)) is not None:
            other[said] = new_text
            if not every:
                break
    if len(other) < (2 if every else 1):
        return None
    # From the end, so that the offsets of the numbers before stay right.
    for number in reversed(found):
        if number.text in other:
            plural = f"{number.unit}s" if number.unit else ""
            text = text[: number.start] + other[number.text] + plural + text[number.end + len(number.unit) :]
    return text, [f"{said} → {new}" for said, new in other.items()]


def _ends(text: str, around: Sequence[Number], number: Number, other: Mapping[str, str]) -> tuple[float, float]:
    """Return the values that another number has to lie between, if it is an end of a range; 0 for none."""
    ends = [0.0, 0.0]
    for low, high in pairwise(around):
        is_range = re.fullmatch(r"[^\w\n-]{0,3}(?:[CF] )?(?:-|–|to|and) ?", text[low.end : high.start])
        if is_range and low.form == high.form:
            end = low if high is number else high
            ends[end is high] = value(other.get(end.text, end.text)) or 0.0
    return ends[0], ends[1]
