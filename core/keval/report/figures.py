"""Figures as texts: numbers that may be unknown, differences, intervals, counts, times; names of metrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from keval.records.effects import Effect
from keval.records.scores import Scale, Scorer
from keval.report.lines import one_line

EXPENSE_UNITS: Mapping[str, str] = {"seconds": "s", "tokens": "tokens", "usd": "$", "tool_calls": "tool calls"}
"""The units of what an answer takes, by the name that effects on it have as their metric."""


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
    text = number(value, places)
    return text if value is None or text.startswith("-") else f"+{text}"


def counted(count: int, what: str) -> str:
    """Return a count with what is counted, in the plural unless it is one."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def interval(low: float | None, high: float | None, *, signs: bool = False) -> str:
    """Return an interval as `0.10 to 0.30`; an empty text if an end is unknown."""
    if low is None or high is None:
        return ""
    told = signed if signs else number
    return f"{told(low)} to {told(high)}"


def decimals(effect: Effect) -> int:
    """Return how many decimals an effect needs: two, and more where the values are small."""
    known = [abs(value) for value in (effect.mean, effect.against_mean, effect.difference) if value is not None]
    largest = max(known, default=1.0)
    return 2 if largest >= 0.1 or not largest else 3 if largest >= 0.01 else 4


def _half_width(effect: Effect) -> float | None:
    """Return half the width of an interval that is as long to both sides, as far as two decimals show; else `None`."""
    if effect.difference is None or effect.ci_low is None or effect.ci_high is None:
        return None
    places = decimals(effect)
    below, above = effect.difference - effect.ci_low, effect.ci_high - effect.difference
    if abs(round(below, places) - round(above, places)) > 1.5 * 10**-places:
        return None
    return max(below, above)


def bracketed(effects: Iterable[Effect]) -> bool:
    """Return whether any of the intervals is longer to one side, so that all are to be shown by their ends."""
    return any(effect.ci_low is not None and _half_width(effect) is None for effect in effects)


def interval_of(effect: Effect, *, ends: bool) -> str:
    """Return the interval of an effect: `±0.08`, or by its ends, `[-0.02, +0.30]`; empty if there is none."""
    if effect.ci_low is None or effect.ci_high is None:
        return ""
    places = decimals(effect)
    half = _half_width(effect)
    if ends or half is None:
        return f"[{signed(effect.ci_low, places)}, {signed(effect.ci_high, places)}]"
    return f"±{number(half, places)}"


def aligned(texts: Sequence[str]) -> list[str]:
    """Return numbers as texts with the decimal points below each other."""
    wholes = [text.partition(".")[0] for text in texts]
    width = max(map(len, wholes), default=0)
    lines = [" " * (width - len(whole)) + text for whole, text in zip(wholes, texts, strict=True)]
    longest = max(map(len, lines), default=0)
    return [line.ljust(longest) for line in lines]


def time_span(seconds: float) -> str:
    """Return a span of time with as much detail as one remembers: `0.4 s`, `13 s`, `3 min 20 s`, `10 min`, `2 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def display_names(scorers: Iterable[Scorer]) -> Mapping[Scorer, str]:
    """Return each scorer's name: the last part of the metric's with spaces in place of underscores.

    Two metrics with the same last part keep their full names, and a rubric that several judges grade by has the judge.
    """
    known = list(dict.fromkeys(scorers))
    graded = Counter(metric for metric, _ in known)
    last = {metric: one_line(metric.rpartition("/")[2].replace("_", " ")) or one_line(metric) for metric in graded}
    shared = Counter(last.values())
    names = {}
    for metric, judge in known:
        name = last[metric] if shared[last[metric]] == 1 else one_line(metric)
        names[metric, judge] = f"{name} by {one_line(judge)}" if judge and graded[metric] > 1 else name
    return names


def with_units(name: str, scale: Scale) -> str:
    """Return a metric's name with what its figures are in: `tone (1-5)`, `time (s)`; nothing for one from 0 to 1."""
    usual = (scale.low, scale.high) == (0.0, 1.0) or math.isinf(scale.high)
    told = " ".join(filter(None, ("" if usual else f"{scale.low:g}-{scale.high:g}", one_line(scale.unit))))
    return f"{name} ({told})" if told and told != name else name
