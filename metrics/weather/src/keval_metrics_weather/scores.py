"""Scores: the scale that all of these metrics score on, the checks of their options, and how points add up."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, TypeVar

import attrs
from attrs.validators import ge

from keval import Scale, Score
from keval_metrics_weather.reading.words import Said, Text

SCALE = Scale(bands={"poor": 0.0, "acceptable": 0.4, "good": 0.7, "excellent": 0.9})
"""From 0 to 1, each band from where the document lets it begin (metrics-assessment.md, Overview)."""


class FunctionalPerformance:
    """A metric of this category (metrics-assessment.md, Overview and Conclusion)."""

    __slots__ = ()

    scale: ClassVar[Scale] = SCALE
    category: ClassVar[str] = "Functional performance"


class BehavioralQuality:
    """A metric of this category (metrics-assessment.md, Overview and Conclusion)."""

    __slots__ = ()

    scale: ClassVar[Scale] = SCALE
    category: ClassVar[str] = "Behavioral quality"


T = TypeVar("T", int, float)


def not_negative(default: T) -> T:
    """Return a field for a number from 0 on: seconds, tolerances, counts."""
    return attrs.field(default=default, validator=ge(0))


def check_rising(options: object, *names: str, strictly: bool = True) -> None:
    """Check that options rise in the order of their names; unless `strictly`, neighbours may be equal.

    Raises ValueError: they do not; the message begins with the option that is out of order.
    """
    for lower, higher in pairwise(names):
        below, above = getattr(options, lower), getattr(options, higher)
        if above < below or (strictly and above == below):
            bound = "more than" if strictly else "at least"
            raise ValueError(f"'{higher}' must be {bound} '{lower}', which is {below:g}: {above:g}")


NEUTRAL = 0.5
"""What the document gives where there is nothing to judge."""

_LONGEST_EXCERPT = 80
_MOST_SHOWN = 5
Point: TypeAlias = tuple[str, float, tuple[str, ...] | bool]
"""What is added to a score, or taken off it if negative, by how much, and what was found for it.

It counts when something was found: words of the answer, which are shown, or the mere truth.
"""


@lru_cache(maxsize=256)
def signed(value: float) -> str:
    """Return a number of points with its sign: `+0.2`, `-0.3`."""
    return f"{value:+g}"


@lru_cache(maxsize=64)
def _beginning(base: float) -> str:
    return f"{base:g} to begin with"


def excerpt(text: str) -> str:
    """Return a text short enough for a reason."""
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1] + "…"


def tally(points: Iterable[Point], answer: Text | None = None, base: float = NEUTRAL, **details: Any) -> Score:
    """Add the points that count up from a base, at most to 1; then take the penalties off, at least to 0.

    The cap comes before the penalties, so that a surplus of points does not hide a fault. What was found in the
    `answer` is marked there, see `mark`.
    """
    gained, lost = base, 0.0
    reasons = [_beginning(base)]
    evidence: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for what, value, found in points:
        if not found:
            continue
        if value > 0:
            gained += value
        else:
            lost -= value
        names: list[str] = []
        reason = f"{signed(value)} {what}"
        if not isinstance(found, bool):
            names += map(str, found)
            shown = ", ".join(names[:_MOST_SHOWN])
            if len(shown) > _LONGEST_EXCERPT:
                shown = ", ".join(map(excerpt, names[:_MOST_SHOWN]))
            reason = f"{reason} ({shown})"
            for each in found:
                if isinstance(each, Said) and each.text is answer:  # else it was found elsewhere, as in the question
                    marks.append(mark(answer, each.start, each.end, what, "good" if value > 0 else "bad"))
        reasons.append(reason)
        evidence.append({"what": what, "points": value, "found": names})
    if marks:
        details["marks"] = marks
    total = max(0.0, min(1.0, gained) - lost)
    return Score(round(total, 6), ", ".join(reasons), details={"base": base, "points": evidence, **details})


def mark(answer: Text, start: int, end: int, label: str, kind: str) -> dict[str, Any]:
    """Return the mark of what stands between two offsets of an answer, by the offsets of the answer as it was given.

    A `kind` is `good`, `bad`, or `neutral` for what was read and counts for nothing.
    """
    if answer.joined:
        start, end = answer.as_given(start), answer.as_given(end)
    return {"start": start, "end": end, "label": label, "kind": kind}


def neutral(reason: str, **details: Any) -> Score:
    """Return the document's neutral score, with what there was nothing of."""
    return Score(NEUTRAL, reason, neutral=True, details=details)
