"""Holding what scorers return to what a score is: what is none is a failure that is kept, and never a low score."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import TypeAlias

from keval.errors import TrialError
from keval.records import Failure
from keval.scores import Rubric, Scale, Score

__all__ = ["Scored", "checked", "failure_of", "graded", "unscored"]

Scored: TypeAlias = tuple[Score, Failure | None]
"""A score, and if the scorer failed, with what."""

_LARGEST = 1e100
"""No measurement; the squares of larger numbers cannot be added up."""

_TYPES = (float | int | None, str, bool, dict | Mapping)
"""What value, reason, neutral and details of a score are."""


def checked(score: object, scale: Scale) -> Scored:
    """Hold a score to its scale; what leaves it is no score."""
    if not isinstance(score, Score):
        return unscored(TypeError(f"expected a Score, got {type(score).__name__}"))
    value, fields = score.value, (score.value, score.reason, score.neutral, score.details)
    if not all(map(isinstance, fields, _TYPES)) or isinstance(value, bool):
        return unscored(TypeError(f"a Score is a number, a text, true or false, and a mapping; got {fields!r:.200}"))
    if value is not None and not (scale.low <= value <= min(scale.high, _LARGEST)):
        message = f"the value {value} is outside the scale {scale.low:g} to {scale.high:g}"
        return Score(None, message, details=score.details), Failure("score", "out_of_scale", message)
    return score, None


def graded(score: object, rubric: Rubric) -> Scored:
    """Hold a judge's score to the rubric: it is one of the levels, or there is none."""
    if isinstance(score, TrialError):
        return unscored(score)
    held, failure = checked(score, rubric.scale)
    if failure is None and held.value is not None and held.value not in rubric.levels:
        message = f"the value {held.value:g} is none of the levels {', '.join(map(str, rubric.levels))}"
        return Score(None, message, details=held.details), Failure("score", "out_of_scale", message)
    return held, failure


def unscored(error: BaseException) -> Scored:
    """Return what stands in a score's place when its scorer failed."""
    failure = failure_of(error)
    return Score(None, f"{failure.kind}: {failure.message}"), failure


def failure_of(error: BaseException) -> Failure:
    """Return a scorer's error as data; one that is not explained keeps its traceback."""
    text = None if isinstance(error, TrialError) else "".join(traceback.format_exception(error))
    kind = error.kind if isinstance(error, TrialError) else type(error).__name__
    return Failure("score", kind, str(error) or kind, text)
