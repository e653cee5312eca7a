"""Scores, and the scales, rubrics and judgements behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from keval.records.trial import Failure
from keval.records.usage import Usage

Scorer: TypeAlias = tuple[str, str | None]
"""Who scores: a metric alone, or a rubric and the judge that grades by it."""


class Scored:
    """A record about one scorer."""

    # Without this, every record that inherits from it would have a `__dict__`.
    __slots__ = ()
    metric: str
    judge: str | None

    @property
    def scorer(self) -> Scorer:
        """Who scores, or has scored."""
        return (self.metric, self.judge)


def _finite(scale: Scale, attribute: attrs.Attribute[float], value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"a scale begins at a number, got low={value}; only high may be without end")


def _above_low(scale: Scale, attribute: attrs.Attribute[float], value: float) -> None:
    if not value > scale.low:
        raise ValueError(f"a scale rises, got low={scale.low:g} and high={value:g}")


def _rising(scale: Scale, attribute: attrs.Attribute[Mapping[str, float]], value: Mapping[str, float]) -> None:
    begins = [*value.values()]
    if not all(isinstance(begin, int | float) for begin in begins) or begins != sorted(begins):
        raise ValueError(f"a scale's bands are named lowest first, each with the number it begins at, got {value}")


def _within(scale: Scale, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not 0 < value < scale.high - scale.low:
        raise ValueError(
            f"a margin is above 0 and less than the length of the scale, {scale.high - scale.low:g}, got {value:g}"
        )


SMALL_SHARE = 0.05
"""The share of a scale within which means are called equal, if the scale has no `margin`."""


@attrs.frozen
class Scale:
    """The range a metric or rubric scores in; `high` may be `math.inf`.

    `better` is the better direction, and `unit` the unit, such as `s`. `bands` are names for parts of the range, each
    with the value it begins at, lowest first. `margin` is the smallest difference that matters.
    """

    low: float = attrs.field(default=0.0, validator=_finite)
    high: float = attrs.field(default=1.0, validator=_above_low)
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""
    bands: Mapping[str, float] = attrs.field(factory=dict, validator=_rising)
    margin: float | None = attrs.field(default=None, validator=_within)

    @property
    def least(self) -> float:
        """The smallest difference that matters: `margin`, or else 5 % of the scale, infinite for one without an end."""
        return SMALL_SHARE * (self.high - self.low) if self.margin is None else self.margin


def _described(rubric: Rubric, attribute: attrs.Attribute[Mapping[int, str]], value: Mapping[int, str]) -> None:
    if blank := [level for level, description in value.items() if not description.strip()]:
        raise ValueError(f"every level needs a description; {', '.join(map(str, blank))} has none")
    if rubric.kind == "preference" and value.keys() != {-1, 0, 1}:
        raise ValueError("the levels of a rubric of the kind preference are -1, 0 and 1")


def named_band(bands: Mapping[str, float], value: float) -> str | None:
    """The name of the band of a scale that a value is in; `None` without bands, or below the first."""
    # A mean of 0.9s may come out a hair below 0.9.
    return next((name for name in reversed([*bands]) if value >= bands[name] - 1e-9), None)


LARGEST = 1e100
"""The largest value of a score; the squares of larger ones would overflow."""


@attrs.frozen
class Score:
    """A metric's or judge's verdict on a trial.

    `value=None` is *unscored* and needs a reason. `neutral=True` marks a default given where there was nothing to
    judge; it is shown, and left out of means unless the config says `neutral: count`.
    """

    value: float | None
    reason: str = ""
    neutral: bool = False
    details: Mapping[str, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError("a score without a value needs a reason")


@attrs.frozen
class Judgement:
    """One grading of an answer by a judge, as its scores share it.

    `repetition` counts from 1. `unverified_claims` is what the answer states and the judge could neither confirm nor
    refute by the golden answer; `None` if it did not say. `model_calls` is 0 if the judge was not asked, because the
    sample has no golden answer and the rubrics need one. `rejected` are replies that could not be read or left a
    rubric's levels, unchanged; `attempts` are failures after which the judge was asked again, and
    `refusals` counts model requests that were repeated below it.
    """

    repetition: int = 1
    unverified_claims: tuple[str, ...] | None = None
    model_calls: int | None = None
    usage: Usage = Usage()
    rejected: tuple[str, ...] = ()
    attempts: tuple[Failure, ...] = ()
    refusals: int = 0


@attrs.frozen
class ScoreLine(Scored):
    """A line of scores.jsonl: a score, what it is of, and the failure of the scorer, if it failed.

    `repetition` is the trial's. `judgement`, which has the judge's own repetition, is `None` for a metric. `digest`
    identifies the version of the scorer, including its options and its rubric.
    """

    trial: str
    sample: str
    agent: str
    condition: str
    repetition: int
    metric: str
    judge: str | None
    score: Score
    failure: Failure | None = None
    judgement: Judgement | None = None
    digest: str = ""


RubricKind: TypeAlias = Literal["levels", "claims", "preference"]


@attrs.frozen
class Rubric:
    """A named scale for a judge: what to look at, and one description per level (lowest first).

    With `needs_answer` the response is compared with the golden answer, and a sample without one is unscored.

    Its `kind` says what a judge does: it chooses one of the `levels`; it cuts the response into `claims`, and the score
    is a share of these, between the two levels that describe none and all; or it compares the response with another
    one, and the `preference` is -1, 0 or 1.

    The `share` is of the claims that are `grounded` in the golden answer or a tool result and contradicted by neither;
    of those that are `uncontradicted`; of the golden answer's claims that are `covered`; or of what a sample says is
    `expected`, under `expectations` of its metadata.
    """

    name: str
    instructions: str
    levels: Mapping[int, str] = attrs.field(validator=[attrs.validators.min_len(2), _described])
    needs_answer: bool = False
    kind: RubricKind = "levels"
    share: Literal["grounded", "uncontradicted", "covered", "expected"] | None = None

    def __attrs_post_init__(self) -> None:
        if (self.kind == "claims") != (self.share is not None):
            raise ValueError("'share' must stand beside `kind: claims`: grounded, uncontradicted, covered or expected")
        if self.share == "covered" and not self.needs_answer:
            raise ValueError("'needs_answer' must be true where the share is of the golden answer's claims")

    @property
    def scale(self) -> Scale:
        return Scale(float(min(self.levels)), float(max(self.levels)))
