"""Amounts: the numbers of a text with what they count, so that "24 hours" is a day and "45 days" no month."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from keval_simulator.words import NUMBER_WORDS, STOP, lexicon, stem

_TABLE = """
    time 1 s sec secs second seconds
    time 0.001 ms millisecond milliseconds
    time 60 min mins minute minutes
    time 3600 h hr hrs hour hours
    time 86400 day days
    time 604800 week weeks
    months 1 month months
    months 12 year years
    bytes 1 byte bytes b
    bytes 1e3 kb kilobyte kilobytes
    bytes 1e6 mb megabyte megabytes
    bytes 1e9 gb gigabyte gigabytes
    bytes 1e12 tb terabyte terabytes
    bytes 1024 kib
    bytes 1048576 mib
    bytes 1073741824 gib
    bytes 1099511627776 tib
    metre 1 m metre metres meter meters
    metre 1000 km kilometre kilometres kilometer kilometers
    metre 0.01 cm
    metre 0.001 mm
    gram 1 g gram grams
    gram 1000 kg kilogram kilograms
    gram 0.001 mg milligram milligrams
    percent 1 % percent
    celsius 1 °c celsius
    fahrenheit 1 °f fahrenheit
    m/s 1 m/s
    km/h 1 km/h
    usd 1 $ usd dollar dollars
    eur 1 € eur euro euros
    gbp 1 £ gbp
"""
_UNITS = {
    name: (dimension, float(factor))
    for dimension, factor, *names in map(str.split, _TABLE.strip().splitlines())
    for name in names
}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100}
_POWERS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALES = rf"(?P<scales>(?:[\s-](?:{'|'.join(_POWERS)})\b){{0,3}})"
_WORDS = {**{word: value for word, value in NUMBER_WORDS.items() if value > 0}, **_TENS}
_NUMBER = re.compile(
    r"(?:(?P<money>[$€£]\s?)?(?<![\w.])(?P<number>[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-−]?\d+(?:\.\d+)?)(?![\d])"
    # "One" is a number only in "one million".
    rf"|\b(?P<word>(?!one\b(?![\s-](?:{'|'.join(_POWERS)})\b))(?:{'|'.join(_WORDS)}))\b){_SCALES}",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[\s-]?(°\s?[CFcf]\b|%|[€£$]|m/s\b|km/h\b|[^\W\d_][\w-]*)")
_RANGE = re.compile(rf"\s*(?:[-–—]|to|and|or)\s*[-−]?\d+(?:\.\d+)?{_SCALES}", re.IGNORECASE)
_PER = re.compile(
    r"\s*(?:per\s+(?P<any>[^\W\d_]+)|(?:/|\b(?:an?|each|every)\s)\s*(?P<known>[^\W\d_]+))\b", re.IGNORECASE
)
_BEFORE = 60
"""How many characters before a number may say what it is."""
_ROUNDED = 0.05
"""The share of an amount that rounding may take from it: 12 kg are 12.4 kg, 2 GB are not 1.5 GB."""
_DEGREES = ("celsius", "fahrenheit")
_YEARLY = lexicon("in since by until from during year before after")


@attrs.frozen
class Amount:
    """A number as `said`, in the base of its unit; `decimals` are those of the written number, "1.5 million" has -5.

    `measured` is true for a unit of the table; else `unit` is the word that the number counts, or `@word` for the word
    before it ("port 80"). `per` is what a rate is for, such as time, and `each` how much of that, in its base.
    """

    said: str
    value: float
    unit: str
    measured: bool
    decimals: int
    factor: float
    span: tuple[int, int]
    digits: int
    """Where the number itself ends."""
    per: str = ""
    each: float = 1.0

    @property
    def key(self) -> str:
        """What is the same for equal amounts that are said in full."""
        return f"{self.value:.15g} {self.unit}" + (f" per {self.each:.15g} {self.per}" if self.per else "")


def amounts_in(text: str) -> Iterator[Amount]:
    """Yield the amounts of a sentence, in digits or in words."""
    for match in _NUMBER.finditer(text):
        written = match["word"] or match["number"].replace(",", "").replace("−", "-")
        plain = float(_WORDS[written.lower()]) if match["word"] else float(written)
        decimals = len(written.partition(".")[2]) if match["number"] else 0
        bounds = _RANGE.match(text, match.end())
        power = _power(match) or (_power(bounds) if bounds else 0)
        unit, factor, end = _unit(text, match, bounds)
        measured = factor is not None
        if not measured and _is_year(text, match, plain):
            unit, measured, end = "year", True, match.end()
        per, each, end = _rate(text, end)
        factor = factor or 1.0
        span = (match.start(), end)
        value = plain * 10**power * factor
        yield Amount(text[slice(*span)], value, unit, measured, decimals - power, factor, span, match.end(), per, each)


def _power(match: re.Match[str]) -> int:
    return sum(_POWERS[word] for word in re.findall(r"[a-z]+", match["scales"].lower()))


def same_amount(one: Amount, other: Amount) -> bool:
    """Tell whether two amounts of one unit are equal, or one is the other, rounded ("18 °C" for "18.4 °C").

    What one of them leaves out, "per minute" say, is taken to be meant.
    """
    if one.per and other.per:
        if one.per != other.per:
            return False
        one, other = (attrs.evolve(it, value=it.value / it.each, factor=it.factor / it.each) for it in (one, other))
    rough = one if one.decimals < other.decimals else other
    slack = 0.5 * rough.factor * 10**-rough.decimals if one.decimals != other.decimals else 0.0
    if one.unit not in _DEGREES:
        slack = min(slack, _ROUNDED * abs(rough.value))
    return abs(one.value - other.value) <= slack + 1e-9 * abs(one.value)


def same_unit(one: Amount, other: Amount) -> bool:
    """Tell whether two amounts count the same, whether the word stands before or behind ("daily: 7", "7 daily")."""
    return one.unit.lstrip("@") == other.unit.lstrip("@")


def _unit(text: str, match: re.Match[str], bounds: re.Match[str] | None) -> tuple[str, float | None, int]:
    """Return what a number counts, the factor to its base if that is measured, and where the amount ends."""
    if match["money"]:
        dimension, factor = _UNITS[match["money"].strip()]
        return dimension, factor, match.end()
    if behind := _UNIT.match(text, bounds.end() if bounds else match.end()):
        word = re.sub(r"\s", "", behind[1].lower())
        # "5 MB" in capitals are bytes, "5 m" are metres; "5 M" and "a 3 B" are neither.
        if word in _UNITS and not (len(behind[1]) == 1 and behind[1].isupper()):
            dimension, factor = _UNITS[word]
            return dimension, factor, match.end() if bounds else behind.end()
        if word.isalpha() and word not in STOP and word != "per":
            return stem(word), None, match.end() if bounds else behind.end()
    before = re.findall(r"--?[A-Za-z][\w-]*|[^\W\d]\w*", text[max(match.start() - _BEFORE, 0) : match.start()])
    named = next((word for word in reversed(before[-4:]) if word.lower() not in STOP), "")
    return f"@{stem(named.lower())}" if named else "", None, match.end()


def _rate(text: str, end: int) -> tuple[str, float, int]:
    """Return what the amount that ends here is per, how much of that, and where it ends now."""
    found = _PER.match(text, end)
    word = (found["any"] or found["known"]).lower() if found else ""
    # Without "per" it may be anything: "2 client/server pairs", "5 a side".
    if found and (found["any"] or word in _UNITS):
        per, each = _UNITS.get(word, (stem(word), 1.0))
        return per, each, found.end()
    return "", 1.0, end


def _is_year(text: str, match: re.Match[str], value: float) -> bool:
    if not re.fullmatch(r"1\d{3}|20\d{2}", match[0]):
        return False
    before = re.findall(r"[^\W\d_]+", text[max(match.start() - _BEFORE, 0) : match.start()].lower())
    return bool(before) and before[-1] in _YEARLY
