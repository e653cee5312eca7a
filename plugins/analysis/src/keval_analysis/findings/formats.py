"""How the figures of findings are written for people: effects, p values, and what answers take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from keval.records.formats import interval, number, signed, with_sign
from keval.records.models import dollars
from keval_analysis.findings.effects import Effect, Ratio

EXPENSE_UNITS: Mapping[str, str] = {"seconds": "s", "tokens": "tokens", "usd": "$", "tool_calls": "tool calls"}
"""The units of what an answer takes, by the name that effects on it have as their metric."""
_RESOURCES = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars", "tool_calls": "tool calls"}
_EXPENSE_PLACES = {"seconds": 2, "tokens": 0, "tool_calls": 1}


def interval_of(effect: Effect) -> str:
    """Return the interval of an effect, `[-0.02, +0.30]`; an empty text if there is none."""
    return interval(effect.ci_low, effect.ci_high, decimals(effect), signs=True)


def percent_interval(low: float | None, high: float | None) -> str:
    """Return the interval of a share in percent, `[52, 70]`; an empty text if an end is unknown."""
    return "" if low is None or high is None else f"[{100 * low:.0f}, {100 * high:.0f}]"


def decimals(effect: Effect) -> int:
    """Return how many decimals an effect needs."""
    return decimals_of((effect.mean, effect.against_mean, effect.difference))


def decimals_of(values: Iterable[float | None]) -> int:
    """Return how many decimals values need together: two, and more where the largest is small."""
    known = [abs(value) for value in values if value is not None]
    largest = max(known, default=1.0)
    # A figure keeps two digits that tell something.
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


def token_count(count: int) -> str:
    """Return a number of tokens: whole below ten thousand, else in millions."""
    return f"{count:,} tokens" if count < 10_000 else f"{count / 1e6:,.2f} M tokens"


def expense(name: str, value: float, *, signs: bool = False, unit: bool = True) -> str:
    """Return how much an answer takes of a resource, or takes more: `0.14 s`, `+3,538 tokens`, `+$0.0012`."""
    if name == "usd":
        told = f"{'-' if value < 0 else ''}{dollars(abs(value))}"
        return with_sign(told, value) if signs else told
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
