"""The average over all metrics of each arm, and how far averages differ, with intervals over questions.

Each metric counts as a share of its scale, 1 being the better end, and a rubric as one metric however many judges grade
by it. A scale without an end has no shares and is left out, and so is a metric that an arm has no mean of.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations, compress
from operator import sub
from typing import TYPE_CHECKING

import attrs

from keval.analysis.stats.intervals import Values, mean_intervals
from keval.analysis.stats.score_sums import SampleValues
from keval.findings.effects import Arm, ArmAverage, AverageDifference, Averages
from keval.records.manifest import ScorerEntry
from keval.records.scores import Scale

if TYPE_CHECKING:  # NumPy takes a tenth of a second to import
    from keval.analysis.stats.looking import Looking


@attrs.frozen(eq=False)
class Influence:
    """An average, and what each sample that was asked makes of it: their mean is the average."""

    average: float
    by_sample: Sequence[float]


def averages_of(
    scorers: Sequence[ScorerEntry],
    values: Mapping[Arm, Sequence[SampleValues]],
    clusters: Sequence[int] | None,
    looking: Looking | None = None,
) -> Averages:
    """Return the average of each arm, and the differences of arms that share their agent or their condition.

    `values` has for each arm what each of the `scorers` found, by sample. A question counts in an average as much as it
    counts in the means of the metrics that have a score for it. The interval of a difference is that of the mean over
    questions of what each adds to it.
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
    asked, places = _places(found[number].samples for found in values.values() for number in kept)
    influences = {arm: _influence(scorers, found, weights, places) for arm, found in values.items()}
    of = None if clusters is None else [clusters[sample] for sample in asked]
    ends = mean_intervals([Values(each.by_sample, of, 0.0, 1.0) for each in influences.values()])
    arms = tuple(
        ArmAverage(arm.agent, arm.condition, each.average, *((end.low, end.high) if end else (None, None)))
        for (arm, each), end in zip(influences.items(), ends, strict=True)
    )
    return Averages(metrics, left_out, arms, tuple(_differences(influences, of, looking)))


def _differences(
    influences: Mapping[Arm, Influence], clusters: Sequence[int] | None, looking: Looking | None
) -> Iterator[AverageDifference]:
    pairs = [*_pairs([*influences])]
    if not pairs:
        return
    from keval.analysis.stats.paired import Differences, paired_effects  # NumPy takes a tenth of a second to import

    rows = [
        Differences(array("d", map(sub, influences[arm].by_sample, influences[against].by_sample)), clusters, 1.0)
        for arm, against in pairs
    ]
    for (arm, against), found in zip(pairs, paired_effects(rows, looking=looking), strict=True):
        yield AverageDifference(arm.agent, arm.condition, against, found.difference or 0.0, found.low, found.high)


def _pairs(arms: Sequence[Arm]) -> Iterator[tuple[Arm, Arm]]:
    for against, arm in combinations(arms, 2):
        if (arm.agent == against.agent) != (arm.condition == against.condition):
            yield arm, against


def _influence(
    scorers: Sequence[ScorerEntry],
    found: Sequence[SampleValues],
    weights: Mapping[int, float],
    places: Sequence[int],
) -> Influence:
    average, by_sample = 0.0, array("d", bytes(8 * places[-1]))
    for number, weight in weights.items():
        shares = _shares(found[number].means, scorers[number].scale)
        mean = math.fsum(shares) / len(shares)
        average += weight * mean
        factor = weight * len(by_sample) / len(shares)
        for sample, share in zip(found[number].samples, shares, strict=True):
            by_sample[places[sample]] += factor * (share - mean)
    return Influence(average, array("d", (average + each for each in by_sample)))


def _places(of: Iterable[Sequence[int]]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the samples that any has, rising, and by the number of a sample how many of them come before it."""
    known = bytearray()
    for samples in of:
        known.extend(bytes(max(0, samples[-1] + 1 - len(known))))
        for sample in samples:
            known[sample] = 1
    return array("I", compress(range(len(known)), known)), array("I", accumulate(known, initial=0))


def _shares(values: Sequence[float], scale: Scale) -> Sequence[float]:
    best, worst = (scale.low, scale.high) if scale.better == "lower" else (scale.high, scale.low)
    return array("d", ((value - worst) / (best - worst) for value in values))
