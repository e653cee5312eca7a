"""The average over all metrics of each arm, and how far averages differ, with intervals over questions.

Each metric counts as a share of its scale, 1 being the better end, and a rubric as one metric however many judges grade
by it. A scale without an end has no shares and is left out, and so is a metric that an arm has no mean of.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import attrs

from keval.records.manifest import ScorerEntry
from keval.records.scores import Scale
from keval_analysis.findings.effects import Arm, ArmAverage, AverageDifference, Averages
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_analysis.stats.score_sums import SampleValues

if TYPE_CHECKING:  # NumPy takes a tenth of a second to import
    from keval_analysis.stats.looking import Looking


Shares: TypeAlias = Mapping[int, float]
"""The shares of a scale that a scorer gave, by sample."""


@attrs.frozen(eq=False)
class Influence:
    """An average, and what each sample that was asked makes of it: their mean is the average. Samples have sources."""

    average: float
    by_sample: Sequence[float]
    clusters: Sequence[int] | None = None


def averages_of(
    scorers: Sequence[ScorerEntry],
    values: Mapping[Arm, Sequence[SampleValues]],
    clusters: Sequence[int] | None,
    looking: Looking | None = None,
) -> Averages:
    """Return the average of each arm, and the differences of arms that share their agent or their condition.

    `values` has for each arm what each of the `scorers` found, by sample. A question counts in an average as much as it
    counts in the means of the metrics that have a score for it. In a difference, a metric counts by the questions that
    both arms have a score for, as an arm may lose its hard ones; the interval is that of the mean over questions of
    what each adds to it. A difference is unknown where two arms share no question of a metric.
    """
    left_out = {
        entry.metric: "its scale has no end" if math.isinf(entry.scale.high) else "an arm has no mean of it"
        for number, entry in enumerate(scorers)
        if math.isinf(entry.scale.high) or not all(len(found[number].samples) for found in values.values())
    }
    kept = [number for number, entry in enumerate(scorers) if entry.metric not in left_out]
    metrics = tuple(dict.fromkeys(scorers[number].metric for number in kept))
    if not kept:
        return Averages((), left_out)
    judges = Counter(scorers[number].metric for number in kept)
    weights = {number: 1 / len(metrics) / judges[scorers[number].metric] for number in kept}
    shares = {
        arm: {number: _shares(found[number], scorers[number].scale) for number in kept} for arm, found in values.items()
    }
    influences = {arm: _influence(found, weights, clusters) for arm, found in shares.items()}
    ends = mean_intervals([Values(each.by_sample, each.clusters, 0.0, 1.0) for each in influences.values()])
    arms = tuple(
        ArmAverage(arm.agent, arm.condition, each.average, *((end.low, end.high) if end else (None, None)))
        for (arm, each), end in zip(influences.items(), ends, strict=True)
    )
    return Averages(metrics, left_out, arms, tuple(_differences(shares, weights, clusters, looking)))


def _differences(
    shares: Mapping[Arm, Mapping[int, Shares]],
    weights: Mapping[int, float],
    clusters: Sequence[int] | None,
    looking: Looking | None,
) -> Iterator[AverageDifference]:
    pairs = [
        (arm, against)
        for against, arm in combinations(shares, 2)
        if (arm.agent == against.agent) != (arm.condition == against.condition)
    ]
    if not pairs:
        return
    from keval_analysis.stats.paired import Differences, paired_effects  # NumPy takes a tenth of a second to import

    rows = []
    for arm, against in pairs:
        sides = {number: (shares[arm][number], shares[against][number]) for number in weights}
        both = {
            number: {sample: share - theirs[sample] for sample, share in ours.items() if sample in theirs}
            for number, (ours, theirs) in sides.items()
        }
        # Without a value, the effect has n = 0 and an unknown difference.
        each = _influence(both, weights, clusters) if all(both.values()) else Influence(0.0, ())
        # Averages are shares, so that they differ by 1 at most.
        rows.append(Differences(each.by_sample, each.clusters, 1.0))
    for (arm, against), found in zip(pairs, paired_effects(rows, looking=looking), strict=True):
        yield AverageDifference(arm.agent, arm.condition, against, found.difference, found.low, found.high)


def _influence(shares: Mapping[int, Shares], weights: Mapping[int, float], clusters: Sequence[int] | None) -> Influence:
    average, asked = 0.0, sorted(set().union(*shares.values()))
    by_sample = dict.fromkeys(asked, 0.0)
    for number, weight in weights.items():
        mean = math.fsum(shares[number].values()) / len(shares[number])
        average += weight * mean
        # A metric may score only some of the questions; scaled so, the mean over all of them is still the average.
        factor = weight * len(asked) / len(shares[number])
        for sample, share in shares[number].items():
            by_sample[sample] += factor * (share - mean)
    of = None if clusters is None else [clusters[sample] for sample in asked]
    return Influence(average, array("d", (average + each for each in by_sample.values())), of)


def _shares(found: SampleValues, scale: Scale) -> Shares:
    best, worst = (scale.low, scale.high) if scale.better == "lower" else (scale.high, scale.low)
    return {sample: (value - worst) / (best - worst) for sample, value in zip(found.samples, found.means, strict=True)}
