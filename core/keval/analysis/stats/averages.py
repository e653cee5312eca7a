"""The average over all metrics of each arm, and how far averages differ, with intervals over questions.

Each metric counts as a share of its scale, 1 being the better end, and a rubric as one metric however many judges grade
by it. A scale without an end has no shares and is left out, and so is a metric that an arm has no mean of.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from keval.analysis.stats.intervals import Values, mean_intervals
from keval.analysis.stats.paired import Differences, paired_effects
from keval.analysis.stats.score_sums import SampleValues
from keval.analysis.stats.units import FloatArray, IntArray
from keval.records.effects import Arm, ArmAverage, AverageDifference, Averages
from keval.records.manifest import ScorerEntry
from keval.records.scores import Scale


@attrs.frozen(eq=False)
class Influence:
    """An average, and what each sample adds to or takes from it: `by_sample` has a mean of 0."""

    average: float
    by_sample: FloatArray


def averages_of(
    scorers: Sequence[ScorerEntry],
    values: Mapping[Arm, Sequence[SampleValues]],
    samples: int,
    clusters: IntArray | None,
) -> Averages:
    """Return the average of each arm, and the differences of arms that share their agent or their condition.

    `values` has for each arm what each of the `scorers` found, by sample; samples are numbered from 0 to `samples`.
    A question counts in an average as much as it counts in the means of the metrics that have a score for it. The
    interval of a difference is that of the mean over questions of what each adds to it.
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
    asked = np.zeros(samples, np.bool_)
    for found in values.values():
        for number in kept:
            asked[found[number].samples] = True
    influences = {arm: _influence(scorers, found, weights, samples, asked) for arm, found in values.items()}
    of = None if clusters is None else clusters[asked]
    ends = mean_intervals([Values(each.average + each.by_sample, of, 0.0, 1.0) for each in influences.values()])
    arms = tuple(
        ArmAverage(arm.agent, arm.condition, each.average, *((end.low, end.high) if end else (None, None)))
        for (arm, each), end in zip(influences.items(), ends, strict=True)
    )
    pairs = [*_pairs(list(values))]
    rows = [
        Differences(
            influences[arm].average
            - influences[against].average
            + influences[arm].by_sample
            - influences[against].by_sample,
            of,
            1.0,
        )
        for arm, against in pairs
    ]
    differences = tuple(
        AverageDifference(arm.agent, arm.condition, against, found.difference or 0.0, found.low, found.high)
        for (arm, against), found in zip(pairs, paired_effects(rows), strict=True)
    )
    return Averages(metrics, left_out, arms, differences)


def _pairs(arms: Sequence[Arm]) -> Iterator[tuple[Arm, Arm]]:
    for against, arm in itertools.combinations(arms, 2):
        if (arm.agent == against.agent) != (arm.condition == against.condition):
            yield arm, against


def _influence(
    scorers: Sequence[ScorerEntry],
    found: Sequence[SampleValues],
    weights: Mapping[int, float],
    samples: int,
    asked: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Influence:
    average, by_sample = 0.0, np.zeros(samples)
    for number, weight in weights.items():
        shares = _shares(found[number].means, scorers[number].scale)
        mean = float(shares.mean())
        average += weight * mean
        by_sample[found[number].samples] += weight * (shares - mean) / len(shares)
    return Influence(average, (asked.sum() * by_sample)[asked])


def _shares(values: FloatArray, scale: Scale) -> FloatArray:
    shares = (values - scale.low) / (scale.high - scale.low)
    return np.asarray(1 - shares if scale.better == "lower" else shares)
