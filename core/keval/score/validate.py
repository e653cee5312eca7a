"""Validating what scorers return: anything but a score within its scale is a failure, and never a low score."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from keval.errors import TrialError
from keval.execute.attempts import failure_of
from keval.records import Failure
from keval.scores import Rubric, Scale, Score

__all__ = ["Verdict", "unscored", "validate_grade", "validate_score"]

_LARGEST = 1e100
"""The largest value of a score; the squares of larger ones would overflow."""

_TYPES = (float | int | None, str, bool, dict | Mapping)
"""The types of value, reason, neutral and details of a score."""


@attrs.frozen
class Verdict:
    """A score, and the failure behind it where the scorer failed."""

    score: Score
    failure: Failure | None = None


def validate_score(score: object, scale: Scale) -> Verdict:
    """Return a metric's score, or a failure if it has the wrong type or leaves its scale."""
    if not isinstance(score, Score):
        return unscored(TypeError(f"expected a Score, got {type(score).__name__}"))
    value, fields = score.value, (score.value, score.reason, score.neutral, score.details)
    if not all(map(isinstance, fields, _TYPES)) or isinstance(value, bool):
        return unscored(TypeError(f"a Score is a number, a text, true or false, and a mapping; got {fields!r:.200}"))
    high = min(scale.high, _LARGEST)
    if value is not None and not (scale.low <= value <= high):
        return _out_of_scale(score, f"the value {value} is outside the scale {scale.low:g} to {high:g}")
    return Verdict(score)


def validate_grade(score: object, rubric: Rubric) -> Verdict:
    """Return a judge's score, or a failure if it is not one of the rubric's levels."""
    if isinstance(score, TrialError):
        return unscored(score)
    verdict = validate_score(score, rubric.scale)
    value = verdict.score.value
    if verdict.failure is None and value is not None and value not in rubric.levels:
        told = f"the value {value:g} is none of the levels {', '.join(map(str, rubric.levels))}"
        return _out_of_scale(verdict.score, told)
    return verdict


def unscored(error: BaseException) -> Verdict:
    """Return the verdict of a scorer that failed."""
    failure = failure_of(error, "score")
    return Verdict(Score(None, f"{failure.kind}: {failure.message}"), failure)


def _out_of_scale(score: Score, message: str) -> Verdict:
    return Verdict(Score(None, message, details=score.details), Failure("score", "out_of_scale", message))
