"""Effects between arms, from what a scorer found in each by sample."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs
import numpy as np

from keval.analysis.stats.intervals import FloatArray, IntArray
from keval.analysis.stats.paired import PairedEffect, holm, paired
from keval.analysis.stats.power import minimal_detectable, samples_needed
from keval.analysis.stats.score_sums import SampleValues
from keval.records.effects import SMALL_SHARE, SURE, Arm, Effect, Interaction, PerProtocol, Verdict
from keval.records.scores import Scale, Scorer


@attrs.frozen
class Observed:
    """The scores of one arm by sample: their sum, how many there are, and how many more there should have been."""

    sums: FloatArray
    scored: IntArray
    lost: IntArray


def lost_share(*arms: Observed) -> float:
    """Return which share of the scores that there should have been were lost."""
    lost = sum(int(arm.lost.sum()) for arm in arms)
    return lost / max(1, lost + sum(int(arm.scored.sum()) for arm in arms))


def manski_bounds(arm: Observed, against: Observed, *, low: float, high: float) -> tuple[float, float] | None:
    """Return the mean paired difference if every lost score had been the worst or the best for it.

    Samples are aligned. Those count that should have had scores in both arms, each with the mean over its repetitions.
    `None` if there is no such sample, or the scale from `low` to `high` has no end. Source: Manski, Nonparametric
    Bounds on Treatment Effects, American Economic Review 80 (1990), 319-323.
    """
    both = (arm.scored + arm.lost > 0) & (against.scored + against.lost > 0)
    if not np.any(both) or not math.isfinite(high - low):
        return None

    def mean(side: Observed, lost: float) -> float:
        totals = side.sums[both] + lost * side.lost[both]
        return float(np.mean(totals / (side.scored[both] + side.lost[both])))

    return mean(arm, low) - mean(against, high), mean(arm, high) - mean(against, low)


Kind: TypeAlias = Literal["condition", "agent", "run"]

_LOST = 0.05
"""The share of lost samples from which an effect has bounds."""


@attrs.frozen(eq=False)
class ArmValues:
    """What one scorer found in one arm, by sample, and how many trials of a sample have no score due to a failure.

    `compliant` has the compliant trials alone; it is `None` where the condition requires no use of tools.
    """

    arm: Arm
    values: SampleValues
    lost: Counter[int] = attrs.field(factory=Counter)
    compliant: SampleValues | None = None


@attrs.frozen(eq=False)
class Measure:
    """How values are compared: by whom they were scored, on which scale, and which samples share a source.

    `clusters` has a number for each sample, or is `None` if every sample is a source of its own.
    """

    scorer: Scorer
    scale: Scale
    clusters: IntArray | None
    seed: int

    def compare(self, arm: SampleValues, against: SampleValues) -> tuple[PairedEffect, IntArray]:
        """Compare the means of two arms on the samples that both have; return these samples, too."""
        shared, ours, theirs = np.intersect1d(arm.samples, against.samples, assume_unique=True, return_indices=True)
        found = paired(
            arm.means[ours],
            against.means[theirs],
            clusters=None if self.clusters is None else self.clusters[shared],
            low=self.scale.low,
            high=self.scale.high,
            seed=self.seed,
        )
        return found, shared


def effect(kind: Kind, measure: Measure, arm: ArmValues, against: ArmValues) -> Effect:
    """Return the effect of an arm against another. Its p is not adjusted, and it has no verdict yet."""
    found, shared = measure.compare(arm.values, against.values)
    ends = found.interval
    # Differences that are all equal tell nothing of how others would scatter.
    sd = found.stderr * found.n**0.5 if found.stderr else None
    bounds = _bounds(measure.scale, arm, against)
    return Effect(
        metric=measure.scorer[0],
        judge=measure.scorer[1],
        agent=arm.arm.agent,
        condition=arm.arm.condition,
        run=arm.arm.run,
        against=against.arm,
        kind=kind,
        n=found.n,
        dropped=len(arm.values.samples) + len(against.values.samples) - 2 * found.n,
        mean=_mean_on(arm.values, shared),
        against_mean=_mean_on(against.values, shared),
        difference=found.difference,
        stderr=found.stderr,
        ci_low=ends.low if ends else None,
        ci_high=ends.high if ends else None,
        method=ends.method if ends else None,
        t_low=found.t_low,
        t_high=found.t_high,
        bca_low=found.bca_low,
        bca_high=found.bca_high,
        d=found.d,
        p=found.p,
        test=found.test,
        mde=_detectable(found),
        needed=None if sd is None or found.difference is None else samples_needed(sd, found.difference),
        bound_low=bounds[0] if bounds else None,
        bound_high=bounds[1] if bounds else None,
        per_protocol=_per_protocol(measure, arm, against),
    )


def interaction(measure: Measure, baseline: str, ours: Sequence[ArmValues], theirs: Sequence[ArmValues]) -> Interaction:
    """Return how much more a condition does for an agent than for another; its p is not adjusted yet.

    `ours` are the arm and the baseline of the agent, `theirs` those of the other agent.
    """
    mine, first = (_difference(arm.values, against.values) for arm, against in (ours, theirs))
    span = measure.scale.high - measure.scale.low
    wide = attrs.evolve(measure, scale=Scale(-span, span) if np.isfinite(span) else measure.scale)
    found, _ = wide.compare(mine, first)
    ends = found.interval
    return Interaction(
        metric=measure.scorer[0],
        judge=measure.scorer[1],
        condition=ours[0].arm.condition,
        baseline=baseline,
        agent=ours[0].arm.agent,
        against_agent=theirs[0].arm.agent,
        n=found.n,
        difference=found.difference,
        stderr=found.stderr,
        ci_low=ends.low if ends else None,
        ci_high=ends.high if ends else None,
        method=ends.method if ends else None,
        p=found.p,
        p_adjusted=None,
    )


def changed(arm: ArmValues, against: ArmValues) -> Iterator[tuple[int, float, float]]:
    """Yield the number of each sample whose mean differs between two arms, with the mean of `against` and of `arm`."""
    return ((sample, old, new) for sample, old, new in paired_values(arm, against) if old != new)


def paired_values(arm: ArmValues, against: ArmValues) -> Iterator[tuple[int, float, float]]:
    """Yield the number of each sample that has a score in two arms, with the mean of `against` and of `arm`."""
    ours, theirs = arm.values, against.values
    shared, here, there = np.intersect1d(ours.samples, theirs.samples, assume_unique=True, return_indices=True)
    for sample, old, new in zip(shared, theirs.means[there], ours.means[here], strict=True):
        yield int(sample), float(old), float(new)


def adjust(effects: Iterable[Effect], scale_of: Mapping[Scorer, Scale]) -> list[Effect]:
    """Adjust the p of each kind of effects for their number, and give each effect its verdict."""
    families: dict[str, list[Effect]] = {}
    for each in effects:
        families.setdefault(each.kind, []).append(each)
    adjusted: list[Effect] = []
    for family in families.values():
        for each, p in zip(family, holm([each.p for each in family]), strict=True):
            told = attrs.evolve(each, p_adjusted=p)
            adjusted.append(attrs.evolve(told, verdict=_verdict(told, scale_of[each.scorer])))
    return adjusted


def adjust_interactions(interactions: Sequence[Interaction]) -> list[Interaction]:
    """Adjust the p of interactions for their number."""
    family = holm([each.p for each in interactions])
    return [attrs.evolve(each, p_adjusted=p) for each, p in zip(interactions, family, strict=True)]


def _verdict(found: Effect, scale: Scale) -> Verdict:
    if found.difference is None or found.ci_low is None or found.ci_high is None:
        return "unknown"
    # The interval and the test may disagree where few samples differ; then nothing is sure.
    apart = found.ci_low > 0 or found.ci_high < 0
    if apart and found.p_adjusted is not None and found.p_adjusted <= SURE:
        return "better" if (found.difference > 0) == (scale.better == "higher") else "worse"
    small = SMALL_SHARE * (scale.high - scale.low)
    return "same" if np.isfinite(small) and max(-found.ci_low, found.ci_high) <= small else "unclear"


def _per_protocol(measure: Measure, arm: ArmValues, against: ArmValues) -> PerProtocol | None:
    if arm.compliant is None:
        return None
    found, _ = measure.compare(arm.compliant, against.compliant or against.values)
    ends = found.interval
    return PerProtocol(found.n, found.difference, ends.low if ends else None, ends.high if ends else None)


def _bounds(scale: Scale, arm: ArmValues, against: ArmValues) -> tuple[float, float] | None:
    """Return the bounds of the effect, if more than a twentieth of the scores are lost and the scale has an end."""
    samples = np.array(sorted({*arm.values.samples, *against.values.samples, *arm.lost, *against.lost}), np.int64)
    ours, theirs = _observed(arm, samples), _observed(against, samples)
    if lost_share(ours, theirs) <= _LOST:
        return None
    return manski_bounds(ours, theirs, low=scale.low, high=scale.high)


def _observed(arm: ArmValues, samples: IntArray) -> Observed:
    """Return what is known of an arm on these samples, which are all that it has a score for or lost one of."""
    at = np.searchsorted(samples, arm.values.samples)
    sums, scored = np.zeros(len(samples)), np.zeros(len(samples), np.int64)
    sums[at], scored[at] = arm.values.means * arm.values.counts, arm.values.counts
    return Observed(sums, scored, np.array([arm.lost[int(sample)] for sample in samples], np.int64))


def _detectable(found: PairedEffect) -> float | None:
    """Return the smallest difference that is seen with 80 % power, which is no less than half the interval."""
    by_t = minimal_detectable(found.stderr, found.n, found.df) if found.stderr else None
    half = (found.interval.high - found.interval.low) / 2 if found.interval else None
    return max((least for least in (by_t, half) if least is not None), default=None)


def _mean_on(values: SampleValues, samples: IntArray) -> float | None:
    found = values.means[np.isin(values.samples, samples, assume_unique=True)]
    return float(found.mean()) if len(found) else None


def _difference(arm: SampleValues, against: SampleValues) -> SampleValues:
    shared, ours, theirs = np.intersect1d(arm.samples, against.samples, assume_unique=True, return_indices=True)
    return attrs.evolve(arm, samples=shared, means=arm.means[ours] - against.means[theirs])
