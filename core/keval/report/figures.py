"""Figures and names as every report writes them: numbers, differences, verdicts, and the names of scorers."""

from __future__ import annotations

import math
from collections import Counter

from keval.effects import Effect
from keval.scores import Scale, Scorer
from keval.summary import Summary

__all__ = [
    "better_share",
    "interval",
    "is_alike",
    "is_flat",
    "number",
    "scorer_names",
    "signed",
    "verdict_words",
]


def number(value: float | None) -> str:
    """Return a number with two decimals, or none from 100 on; `–` for an unknown one."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    # Adding zero removes the sign of -0.0.
    return f"{round(value, 2) + 0.0:.2f}" if abs(value) < 99.995 else f"{value:,.0f}"


def signed(value: float | None) -> str:
    """Return a difference with its sign; `–` for an unknown one."""
    told = number(value)
    return told if value is None or told.startswith("-") else f"+{told}"


def interval(low: float | None, high: float | None, *, signs: bool = False) -> str:
    """Return an interval as `0.10 to 0.30`; an empty text if an end is unknown."""
    if low is None or high is None:
        return ""
    told = signed if signs else number
    return f"{told(low)} to {told(high)}"


def scorer_names(summary: Summary) -> dict[Scorer, str]:
    """Return what to call each scorer: `word count` for `basic/word_count`.

    The vendor is kept where two metrics would have one name, and the judge is named where a rubric has several.
    """
    short = {metric: _short(metric) for metric in (entry.metric for entry in summary.scorers)}
    shared = Counter(short.values())
    judges = Counter(entry.metric for entry in summary.scorers)
    names: dict[Scorer, str] = {}
    for entry in summary.scorers:
        name = short[entry.metric] if shared[short[entry.metric]] == 1 else entry.metric
        names[entry.scorer] = f"{name} by {entry.judge}" if entry.judge and judges[entry.metric] > 1 else name
    return names


def better_share(difference: float, scale: Scale) -> float | None:
    """Return a difference as a share of its scale, positive for the better; `None` for a scale without an end."""
    if math.isinf(scale.high):
        return None
    share = difference / (scale.high - scale.low)
    return -share if scale.better == "lower" else share


def is_flat(effect: Effect) -> bool:
    """Return whether nothing differs for any question."""
    return effect.difference == 0 and not effect.stderr


def is_alike(effect: Effect) -> bool:
    """Return whether every question differs by the same: that is by definition, and no question of chance."""
    return effect.n > 1 and bool(effect.difference) and effect.stderr is not None and effect.stderr < 1e-9


def verdict_words(effect: Effect) -> str:
    """Return in a few words what an effect lets one say."""
    if effect.verdict in ("better", "worse"):
        return effect.verdict
    if effect.difference is None:
        return "not compared"
    if is_alike(effect):
        return "the same for every question"
    if effect.verdict == "same":
        ends = [abs(end) for end in (effect.ci_low, effect.ci_high) if end is not None]
        return f"no difference of {_up(max(ends))} or more" if ends and max(ends) > 0 else "no difference"
    if effect.verdict == "unknown":
        return "too few questions for an interval"
    if effect.needed is not None and effect.needed > effect.n:
        return f"cannot tell: {effect.needed:,} questions would"
    if effect.ci_low is not None and effect.ci_high is not None and (effect.ci_low > 0 or effect.ci_high < 0):
        return "cannot tell, among so many comparisons"
    seen = f"; this run could have seen {_up(effect.mde)}" if effect.mde is not None else ""
    return f"no difference seen{seen}"


def _short(metric: str) -> str:
    return metric.rpartition("/")[2].replace("_", " ")


def _up(value: float) -> str:
    """Round up, so that what is said to be excluded is."""
    return number(math.ceil(value * 100 - 1e-9) / 100)
