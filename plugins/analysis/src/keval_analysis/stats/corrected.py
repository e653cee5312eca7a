"""Effects corrected by people's labels: prediction-powered inference with the judge's levels as predictions.

A judge grades every answer, and people label some that were drawn at random. What people say of these tells how far
the judge is off in each arm, and the judge's levels of all answers make the estimate more exact than the labels alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from keval_analysis.stats.paired import Differences, Rule
from keval_analysis.stats.units import FloatArray, IntArray, t_quantile

MAY_END = "the run may end early, when its effect is decided"
"""Why no effect of such a run is corrected: an interval would have to hold at every look."""
FEWEST = 10
"""The fewest labelled questions of each arm."""
FEWEST_OF_TWO = 30
"""The fewest where people gave two levels, and one of them to nearly all answers of an arm."""
NEARLY_ALL = 0.8
"""The share of an arm's labels on one level from which on they count as nearly all."""
FEWEST_OF_MOST = 80
"""The fewest where most answers of an arm are on one level, and a judge may err by more than usual."""
MOST = 0.7
"""The share of an arm's labels on one level from which on they count as most."""
LEAST_OTHERS = 3
"""The fewest labels of both arms that are not on the commonest level of their arm."""


@attrs.frozen(eq=False)
class Labelled:
    """The answers of one arm that people labelled, an entry for each.

    `people` is the mean level that people gave the answer, `judge` the mean over the judge's gradings, and `units` the
    number of what is independent of others: the question, or its source.
    """

    people: FloatArray
    judge: FloatArray
    units: IntArray

    @property
    def count(self) -> int:
        """How many independent units the answers are of."""
        return len(np.unique(self.units))

    @property
    def commonest(self) -> int:
        """How many labels are on the level that is given most often."""
        return int(np.unique(self.people, return_counts=True)[1].max(initial=0))


@attrs.frozen(eq=False)
class Judged:
    """The judge's paired differences of two arms, one for each question that both have, and the unit of each.

    `span` is how wide the scale is.
    """

    differences: FloatArray
    units: IntArray
    span: float


@attrs.frozen
class Corrected:
    """A difference of two arms with its 95 % interval; `tuning` is λ, the share of the judge's levels that is used.

    `pairs` is how many units have as many labels in one arm as in the other; `None` if some have not, so that the arms
    are estimated apart.
    """

    difference: float
    stderr: float
    df: float
    ci_low: float
    ci_high: float
    tuning: float
    pairs: int | None


def refusal(arm: Labelled, against: Labelled, span: float) -> str | None:
    """Return why labels are too few, or too much alike, to correct the difference of two arms; `None` if they are not.

    The scale is as wide as `span`.

    Where nearly all answers are on one level, a draw may hold none of the few that decide the difference, and nothing
    in it tells so: of answers that pass in 93 and 98 of 100 cases, 30 labels of each arm gave intervals by the standard
    error alone that held the truth in 81 % of the draws, 15 pairs in 65 %, and 30 labels with three or more off the
    commonest level in 95 %. On a scale with levels in between, a judge that mostly errs by one level, and gives the
    best one to the 3 % of an arm that are worth nothing, leaves 30 labels of each arm with intervals that hold the
    truth in 84 to 90 %, and 80 with 93 to 95 %. bench/corrected_coverage.py has the simulation.
    """
    sides = (arm, against)
    least = min(each.count for each in sides)
    told = f"{arm.count} and {against.count} questions are labelled, and each arm needs"
    if least < FEWEST:
        return f"{told} {FEWEST}"
    if len(np.unique(np.concatenate([each.people for each in sides]))) == 1:
        return "people gave one level throughout"
    near = any(each.commonest > NEARLY_ALL * len(each.people) for each in sides)
    two = all(len(np.unique(each.people)) <= 2 for each in sides)
    if near and two and least < FEWEST_OF_TWO:
        return f"{told} {FEWEST_OF_TWO} where nearly all answers are on one level"
    if sum(len(each.people) - each.commonest for each in sides) < LEAST_OTHERS:
        return "people gave nearly all answers the same level"
    levels = np.unique(np.concatenate([levels for each in sides for levels in (each.people, each.judge)]))
    at_ends = len(levels) <= 2 and np.ptp(levels) >= span  # where every error is as large as can be
    if not at_ends and least < FEWEST_OF_MOST and any(each.commonest > MOST * len(each.people) for each in sides):
        why = "where most answers are on one level, as these may hold none of the judge's rare large errors"
        return f"{told} {FEWEST_OF_MOST} {why}"
    return None


def corrected(judged: Judged, arm: Labelled, against: Labelled) -> Corrected:
    """Return the difference of two arms by people's labels and the judge's levels; each arm has three labels or more.

    With J the judge's differences over all n questions, h and j the levels of the labelled answers by people and
    judge, λ = cov(h, j) / var(j) within arms, no less than 0 and no more than 1, and r = h - λ j, the estimate is
    λ mean(J) + mean(r | arm) - mean(r | against). Its standard error sums the squares of what each question adds to
    it, so that a question's labels and its J are not taken as independent, times N / (N - 3) for the N labelled units
    of both arms, with 2 min(m) - 3 degrees of freedom. Where the same m units are labelled in both arms, λ is that of
    their differences, with m - 2. Every answer of an arm has to be as likely to be labelled as another.

    Labels may hold none of a judge's few large errors. So the interval reaches at least as far as that of λ mean(J)
    and those of the means of r by the rule of effects, which accounts for what few labels do not show, do together.

    Source: Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference, arXiv 2311.01453, of which
    this is the difference of two means. λ is the slope of a regression, as the labelled answers are among all; theirs
    divides it by 1 + n/N for labelled ones that are not. Zou and Donner, Construction of confidence limits about effect
    measures, Statistics in Medicine 27 (2008), section 2: how limits of several means add up.
    """
    numbers = np.unique(np.concatenate([judged.units, arm.units, against.units]))
    # The units of all three are numbered alike, as a question may be in each of them.
    of_judge, ours, theirs = (np.searchsorted(numbers, each.units) for each in (judged, arm, against))
    ours_count, theirs_count = (np.bincount(of, minlength=len(numbers)) for of in (ours, theirs))
    counts = [arm.count, against.count]
    paired = np.array_equal(ours_count, theirs_count)
    parts: list[tuple[FloatArray, IntArray | None]]
    if paired:
        known = ours_count > 0
        weights = ours_count[known].astype(np.float64)
        people, judge = (
            (np.bincount(ours, left, len(numbers)) - np.bincount(theirs, right, len(numbers)))[known] / weights
            for left, right in ((arm.people, against.people), (arm.judge, against.judge))
        )
        tuning = slope([(people, judge, weights)])
        parts = [(people - tuning * judge, None)]
    else:
        tuning = slope([(each.people, each.judge, np.ones(len(each.people))) for each in (arm, against)])
        # The second arm is turned round: its lower end counts for the upper end of the difference.
        parts = [(arm.people - tuning * arm.judge, ours), (tuning * against.judge - against.people, theirs)]
    mean = float(np.mean(judged.differences))
    adds = np.bincount(of_judge, tuning * (judged.differences - mean) / len(of_judge), len(numbers))
    by_judge = float(adds @ adds)
    difference = tuning * mean
    for each, of, sign in ((arm, ours, 1), (against, theirs, -1)):
        rest = each.people - tuning * each.judge
        difference += sign * float(np.mean(rest))
        adds += sign * np.bincount(of, (rest - np.mean(rest)) / len(rest), len(numbers))
    stderr = math.sqrt(float(adds @ adds) * sum(counts) / (sum(counts) - 3))
    df = counts[0] - 2.0 if paired else 2.0 * min(counts) - 3
    reach = float(t_quantile(df, 0.95))
    # Held against their median, so that values that nobody saw may lie on either side of it.
    rule = Rule.on([Differences(values - np.median(values), units, judged.span) for values, units in parts])
    unseen = [float(np.sum((end - rule.moments.mean) ** 2)) for end in rule.interval(0.95)]
    below, above = (reach**2 * by_judge + square for square in unseen)
    low, high = (max(reach * stderr, math.sqrt(square)) for square in (below, above))
    low, high = max(difference - low, -judged.span), min(difference + high, judged.span)
    return Corrected(difference, stderr, df, low, high, tuning, counts[0] if paired else None)


def bias_difference(arm: Labelled, against: Labelled, span: float) -> Corrected:
    """Return by how much more the judge's level lies above people's in one arm than in another.

    It is the difference of two means, with the error of `corrected` where nothing but labels is known.
    """
    above, below = (
        attrs.evolve(each, people=each.judge - each.people, judge=0 * each.judge) for each in (arm, against)
    )
    # A single judged difference of 0 adds nothing, so that labels alone count.
    return corrected(Judged(np.zeros(1), arm.units[:1], span), above, below)


def slope(groups: Sequence[tuple[FloatArray, FloatArray, FloatArray]]) -> float:
    """Return by how much people's level rises with the judge's within groups of weighted levels, from 0 to 1.

    It is 0 for a judge that always answers alike, whose levels tell nothing.
    """
    together = alone = 0.0
    for people, judge, weights in groups:
        apart = judge - np.average(judge, weights=weights)
        together += float(np.sum(weights * apart * people))
        alone += float(np.sum(weights * apart**2))
    # By rounding, the scatter of equal levels may be a hair above 0.
    return min(max(together / alone, 0.0), 1.0) if alone > 1e-12 else 0.0
