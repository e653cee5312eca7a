"""Tally: how a score adds up, and the reason and the evidence that go with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from keval import Score

__all__ = ["NEUTRAL", "Point", "excerpt", "neutral", "signed", "tally"]

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
    """Return a number of points with its sign: `+0.2`, `−0.3`."""
    return f"{'−' if value < 0 else '+'}{abs(value):g}"


@lru_cache(maxsize=64)
def _beginning(base: float) -> str:
    return f"{base:g} to begin with"


def excerpt(text: str) -> str:
    """Return a text short enough for a reason."""
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1] + "…"


def tally(base: float, points: Iterable[Point], **details: Any) -> Score:
    """Add the points that count up from a base, at most to 1; then take the penalties off, at least to 0.

    The cap comes before the penalties, so that a surplus of points does not hide a fault.
    """
    gained, lost = base, 0.0
    reasons = [_beginning(base)]
    evidence: list[dict[str, Any]] = []
    for what, value, found in points:
        if not found:
            continue
        if value > 0:
            gained += value
        else:
            lost -= value
        if isinstance(found, bool):
            reasons.append(f"{signed(value)} {what}")
            evidence.append({"what": what, "points": value, "found": []})
        else:
            shown = ", ".join(found[:_MOST_SHOWN])
            if len(shown) > _LONGEST_EXCERPT:
                shown = ", ".join(map(excerpt, found[:_MOST_SHOWN]))
            reasons.append(f"{signed(value)} {what} ({shown})")
            evidence.append({"what": what, "points": value, "found": list(found)})
    total = max(0.0, min(1.0, gained) - lost)
    return Score(round(total, 6), ", ".join(reasons), details={"base": base, "points": evidence, **details})


def neutral(reason: str, **details: Any) -> Score:
    """Return the document's neutral score, with what there was nothing of."""
    return Score(NEUTRAL, reason, neutral=True, details=details)
