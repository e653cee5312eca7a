"""Tally: how a score adds up, and the reason and the evidence that go with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from keval import Score

__all__ = ["NEUTRAL", "Point", "excerpt", "neutral", "signed", "tally"]

NEUTRAL = 0.5
"""What the document gives where there is nothing to judge."""

_LONGEST_EXCERPT = 80


@attrs.frozen
class Point:
    """What is added to a score, or taken off it, and what was found for it in the answer."""

    what: str
    value: float
    found: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.found:
            return f"{signed(self.value)} {self.what}"
        return f"{signed(self.value)} {self.what} ({', '.join(map(excerpt, self.found[:5]))})"


def signed(value: float) -> str:
    """Return a number of points with its sign: `+0.2`, `−0.3`."""
    return f"{'−' if value < 0 else '+'}{abs(value):g}"


def excerpt(text: str) -> str:
    """Return a text short enough for a reason."""
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1] + "…"


def tally(base: float, points: Iterable[Point | None], **details: Any) -> Score:
    """Add points up from a base, at most to 1; then take the penalties off, at least to 0.

    The cap comes before the penalties, so that a surplus of points does not hide a fault.
    """
    gained, lost = base, 0.0
    reasons = [f"{base:g} to begin with"]
    evidence: list[dict[str, Any]] = []
    for point in points:
        if point is None:
            continue
        if point.value > 0:
            gained += point.value
        else:
            lost -= point.value
        reasons.append(str(point))
        evidence.append({"what": point.what, "points": point.value, "found": list(point.found)})
    value = round(max(0.0, min(1.0, gained) - lost), 6)
    return Score(value, ", ".join(reasons), details={"base": base, "points": evidence, **details})


def neutral(reason: str, **details: Any) -> Score:
    """Return the document's neutral score, with what there was nothing of."""
    return Score(NEUTRAL, reason, neutral=True, details=details)
