"""How figures are written for people, everywhere: numbers, differences, intervals, shares, times, amounts of money.

A minus is `-`, a share is `5 %`, and an interval stands by its ends: `+0.27 [+0.17, +0.35]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from keval.records.models import dollars
from keval_analysis.findings.effects import Effect, Ratio

EXPENSE_UNITS: Mapping[str, str] = {"seconds": "s", "tokens": "tokens", "usd": "$", "tool_calls": "tool calls"}
"""The units of what an answer takes, by the name that effects on it have as their metric."""
_RESOURCES = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars", "tool_calls": "tool calls"}
_EXPENSE_PLACES = {"seconds": 2, "tokens": 0, "tool_calls": 1}


def number(value: float | None, places: int = 2) -> str:
    """Return a number; one of at least 100 has no decimals, and an unknown one is `–`."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    # Adding zero removes the sign of -0.0.
    return f"{round(value, places) + 0.0:.{places}f}"


def signed(value: float | None, places: int = 2) -> str:
    """Return a difference with its sign, which 0 has too; `–` for an unknown one."""
    return _with_sign(number(value, places), value)


def short_number(value: float, digits: int = 6, *, signs: bool = False) -> str:
    """Return a number with no more digits than it needs, such as a limit that somebody chose, or a tick of an axis."""
    told = f"{value:,.0f}" if abs(value) >= 100 and digits < 6 else f"{value + 0.0:.{digits}g}"
    return _with_sign(told, value) if signs and value else told


def percent(share: float, places: int = 0, *, signs: bool = False) -> str:
    """Return a share: `5 %`."""
    told = f"{round(100 * share, places) + 0.0:.{places}f} %"
    return _with_sign(told, share) if signs else told


def percent_interval(low: float | None, high: float | None) -> str:
    """Return the interval of a share in percent, `[52, 70]`; an empty text if an end is unknown."""
    return "" if low is None or high is None else f"[{100 * low:.0f}, {100 * high:.0f}]"


def counted(count: int, what: str) -> str:
    """Return a count with what is counted, in the plural unless it is one."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def token_count(count: int) -> str:
    """Return a number of tokens: whole below ten thousand, else in millions."""
    return f"{count:,} tokens" if count < 10_000 else f"{count / 1e6:,.2f} M tokens"


def interval(low: float | None, high: float | None, places: int = 2, *, signs: bool = False) -> str:
    """Return an interval by its ends, `[0.10, 0.30]`; an empty text if an end is unknown."""
    if low is None or high is None:
        return ""
    told = signed if signs else number
    return f"[{told(low, places)}, {told(high, places)}]"


def interval_of(effect: Effect) -> str:
    """Return the interval of an effect, `[-0.02, +0.30]`; an empty text if there is none."""
    return interval(effect.ci_low, effect.ci_high, decimals(effect), signs=True)


def decimals(effect: Effect) -> int:
    """Return how many decimals an effect needs."""
    return decimals_of((effect.mean, effect.against_mean, effect.difference))


def decimals_of(values: Iterable[float | None]) -> int:
    """Return how many decimals values need together: two, and more where the largest is small."""
    known = [abs(value) for value in values if value is not None]
    largest = max(known, default=1.0)
    return 2 if largest >= 0.1 or not largest else 3 if largest >= 0.01 else 4


def aligned(texts: Sequence[str]) -> list[str]:
    """Return numbers as texts with the decimal points below each other."""
    wholes = [text.partition(".")[0] for text in texts]
    width = max(map(len, wholes), default=0)
    lines = [" " * (width - len(whole)) + text for whole, text in zip(wholes, texts, strict=True)]
    longest = max(map(len, lines), default=0)
    return [line.ljust(longest) for line in lines]


def chance(p: float | None) -> str:
    """Return a p value; an empty text for an unknown one."""
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def time_span(seconds: float) -> str:
    """Return a span of time with as much detail as one remembers: `340 µs`, `34 ms`, `3.4 s`, `3 min 20 s`, `2 h`."""
    if seconds < 0.000_5:
        return f"{seconds * 1e6:.0f} µs" if seconds else "0 s"
    if seconds < 0.999_5:
        return f"{seconds * 1000:.{0 if seconds >= 0.009_95 else 1}f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def expense(name: str, value: float, *, signs: bool = False, unit: bool = True) -> str:
    """Return how much an answer takes of a resource, or takes more: `0.14 s`, `+3,538 tokens`, `+$0.0012`."""
    if name == "usd":
        told = f"{'-' if value < 0 else ''}{dollars(abs(value))}"
        return _with_sign(told, value) if signs else told
    told = (signed if signs else number)(value, _EXPENSE_PLACES[name])
    return f"{told} {EXPENSE_UNITS[name]}" if unit else told


def times_as_much(name: str, ratio: Ratio) -> str:
    """Return how many times as much an answer takes, with the interval: `1.20 times the tokens [1.00, 1.50]`."""
    ends = interval(ratio.ci_low, ratio.ci_high)
    return f"{number(ratio.value)} times the {_RESOURCES[name]} {ends}".rstrip()


def expense_interval(name: str, low: float | None, high: float | None) -> str:
    """Return the interval of how much more an answer takes; an empty text if an end is unknown."""
    if low is None or high is None:
        return ""
    return f"[{', '.join(expense(name, end, signs=True, unit=False) for end in (low, high))}]"


def _with_sign(told: str, value: float | None) -> str:
    return told if value is None or told.startswith("-") else f"+{told}"
