"""Effects between arms, from what a scorer found in each by sample."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from keval.records.scores import Scale
from keval_analysis.findings.effects import (
    SURE,
    Effect,
    Interaction,
    PartialEffect,
    Ratio,
    Verdict,
    allowed_drop,
    is_flat,
)
from keval_analysis.stats.paired import Differences, PairedEffect, Rule, holm, paired_effects, together
from keval_analysis.stats.pairs import ArmValues, Families, Measure, Pair
from keval_analysis.stats.power import minimal_detectable, needed_between
from keval_analysis.stats.score_sums import SampleValues
from keval_analysis.stats.units import FloatArray, IntArray, evened, t_quantile

_FIGURES = ("n", "difference", "stderr", "p")
"""What effects and interactions have of a paired difference as it is."""


@attrs.frozen
class Observed:
    """The scores of one arm by sample: their sum, how many there are, and how many more there should have been."""

    sums: FloatArray
    scored: IntArray
    lost: IntArray


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
        return float(np.mean(_means(side, both, lost)))

    return mean(arm, low) - mean(against, high), mean(arm, high) - mean(against, low)


def _means(side: Observed, samples: npt.NDArray[np.bool_], lost: float) -> FloatArray:
    """Return the mean of each of some samples, if each of its lost scores had been `lost`."""
    return np.asarray((side.sums + lost * side.lost)[samples] / (side.scored + side.lost)[samples])


_UNLIKE = 0.05
"""By how much the shares of neutral scores differ from which an effect has bounds for these."""
_FEWEST = 10
"""Samples below which their scatter is too uncertain to say how many would show a difference."""


def differences_of(pair: Pair) -> Differences:
    """Return the differences of two arms on the samples that both have."""
    return _differences(pair.measure, pair.arm.values, pair.against.values)[0]


def _differences(measure: Measure, arm: SampleValues, against: SampleValues) -> tuple[Differences, IntArray]:
    """Return the differences of two arms on the samples that both have, and these samples."""
    shared, before, now = _paired(arm, against)
    clusters = None if measure.clusters is None else np.asarray(measure.clusters)[shared]
    return Differences(now - before, clusters, measure.span, _size(measure, now, before)), shared


def _size(measure: Measure, *means: Sequence[float] | FloatArray) -> float:
    """Return how large scores are: as the scale's ends, or without one as the largest of these means."""
    if math.isfinite(measure.span):
        return max(abs(measure.scale.low), abs(measure.scale.high))
    return max(float(np.max(np.abs(each), initial=0.0)) for each in means)


def _paired(arm: SampleValues, against: SampleValues) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the samples that two arms have values for, with the means of `against` and of `arm`."""
    here, there = np.asarray(arm.samples, np.int64), np.asarray(against.samples, np.int64)
    shared, at, at_against = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    return shared, np.asarray(against.means)[at_against], np.asarray(arm.means)[at]


def effects_of(pairs: Sequence[Pair], families: Families) -> tuple[Effect, ...]:
    """Return the effect of each pair, with its p adjusted for the number of effects in its family, and its verdict."""
    most = max((len(pair.arm.values.samples) for pair in pairs), default=0)
    known = [each for some in together(pairs, most) for each in _estimated(some, families)]
    told, df = [effect for effect, _ in known], [freedom for _, freedom in known]
    scales = {pair.measure.scorer: pair.measure.scale for pair in pairs}
    return tuple(
        _judged(each, families, scales[each.scorer], freedom)
        for each, freedom in zip(_adjusted(told, families), df, strict=True)
    )


def _estimated(pairs: Sequence[Pair], families: Families) -> Iterator[tuple[Effect, float | None]]:
    """Yield the effect of each pair as far as it is known without the others, with its degrees of freedom."""
    found_in = [_differences(pair.measure, pair.arm.values, pair.against.values) for pair in pairs]
    rows, shared = [row for row, _ in found_in], [samples for _, samples in found_in]
    complying = [number for number, pair in enumerate(pairs) if pair.arm.compliant is not None]
    for number in complying:
        pair = pairs[number]
        arm, against = (each.compliant or each.values for each in (pair.arm, pair.against))
        rows.append(_differences(pair.measure, arm, against)[0])
    positive = {number: each for number, pair in enumerate(pairs) if (each := _logarithms(pair))}
    # All rows go through the rule in one call, and `beyond` takes their effects in this order.
    rows += positive.values()
    imputed = {number: ends for number, pair in enumerate(pairs) if (ends := _imputed(pair))}
    rows += [row for each in imputed.values() for row in each]
    found = paired_effects(rows, looking=families.looking)
    beyond = iter(found[len(pairs) :])
    # The shorter one comes first in each `zip`, which would otherwise take one effect too many from `beyond`.
    per_protocol = dict(zip(complying, beyond, strict=False))
    ratios = dict(zip(positive, beyond, strict=False))
    at_ends = {number: (next(beyond), next(beyond)) for number in imputed}
    for number, (pair, one, samples) in enumerate(zip(pairs, found, shared, strict=False)):
        effect = _effect(pair, one, samples, per_protocol.get(number), ratios.get(number))
        yield attrs.evolve(effect, p_lost=_p_lost(one, *at_ends[number]) if number in at_ends else None), one.df


def _imputed(pair: Pair) -> tuple[Differences, Differences] | None:
    """Return the differences if every lost score had been the worst for the arm, and the best; `None` if none is lost.

    Neutral scores are lost as well, where the shares of them differ between the arms.
    """
    scale, clusters = pair.measure.scale, pair.measure.clusters
    if math.isinf(scale.high):
        return None
    unlike = _is_unlike(pair.arm, pair.against)
    # Where the shares are alike, neutral scores are left out in both arms alike.
    samples, (ours, theirs) = _observed(*(_with_neutral(each) if unlike else each for each in (pair.arm, pair.against)))
    both = (ours.scored + ours.lost > 0) & (theirs.scored + theirs.lost > 0)
    if not (ours.lost.any() or theirs.lost.any()) or not both.any():
        return None
    of = None if clusters is None else np.asarray(clusters)[samples[both]]
    ends = (
        _means(ours, both, a) - _means(theirs, both, b) for a, b in ((scale.low, scale.high), (scale.high, scale.low))
    )
    low, high = (Differences(each, of, pair.measure.span, _size(pair.measure)) for each in ends)
    return low, high


def _p_lost(found: PairedEffect, low: PairedEffect, high: PairedEffect) -> float | None:
    """Return the p of an effect whose lost scores had all been the worst for it; 1 if it then is another way round."""
    if not found.difference or found.p is None:
        return None
    against = low if found.difference > 0 else high
    turned = not against.difference or (against.difference > 0) != (found.difference > 0)
    return 1.0 if turned or against.p is None else against.p


def _logarithms(pair: Pair) -> Differences | None:
    """Return the differences of the logarithms of two arms' means, whose mean is that of the ratio.

    `None` if the pair needs no ratio, or there is none, as a mean is not above 0.
    """
    shared, before, now = _paired(pair.arm.values, pair.against.values)
    if not pair.measure.has_ratio or not len(now) or min(now.min(), before.min()) <= 0:
        return None
    clusters = None if pair.measure.clusters is None else np.asarray(pair.measure.clusters)[shared]
    return Differences(np.log(now / before), clusters, size=1.0)  # a quotient is as exact as its two numbers


def _effect(
    pair: Pair, found: PairedEffect, shared: IntArray, compliant: PairedEffect | None, ratio: PairedEffect | None
) -> Effect:
    """Return an effect as far as it is known without the others."""
    arm, against, measure = pair.arm, pair.against, pair.measure
    low, high = _bounds(measure.scale, arm, against)
    neutral_low, neutral_high = None, None
    # Whether there was something to judge is decided by the answer, so that arms may be compared on unlike questions.
    if _is_unlike(arm, against):
        neutral_low, neutral_high = _bounds(measure.scale, _with_neutral(arm), _with_neutral(against))
    return Effect(
        *measure.scorer,
        agent=arm.arm.agent,
        condition=arm.arm.condition,
        run=arm.arm.run,
        against=against.arm,
        kind=pair.kind,
        **{name: getattr(found, name) for name in (*_FIGURES, "worst_case", "d")},
        dropped=len(arm.values.samples) + len(against.values.samples) - 2 * found.n,
        mean=_mean_on(arm.values, shared),
        against_mean=_mean_on(against.values, shared),
        ci_low=found.low,
        ci_high=found.high,
        bound_low=low,
        bound_high=high,
        neutral_low=neutral_low,
        neutral_high=neutral_high,
        per_protocol=None
        if compliant is None
        else PartialEffect(compliant.n, compliant.difference, compliant.low, compliant.high),
        ratio=None if ratio is None else _ratio(ratio),
    )


def _ratio(logarithms: PairedEffect) -> Ratio | None:
    value, low, high = (
        None if each is None else math.exp(each) for each in (logarithms.difference, logarithms.low, logarithms.high)
    )
    return None if value is None else Ratio(value, low, high, logarithms.p)


def _adjusted(effects: Sequence[Effect], families: Families) -> list[Effect]:
    """Adjust p in each family. A difference that is 0 on every question can be no false positive, and is in none.

    Source: Tarone, A modified Bonferroni method for discrete data, Biometrics 46 (1990), 515-522.
    """
    keys = [None if each.p is None or is_flat(each) else (each.kind, families.of(each.metric)) for each in effects]
    ratios = [each.ratio if key else None for each, key in zip(effects, keys, strict=True)]
    sizes = Counter([*keys, *(key for key, ratio in zip(keys, ratios, strict=True) if ratio)])
    p = [*(each.p for each in effects), *(ratio.p if ratio else None for ratio in ratios)]
    # Ratios are adjusted together with the differences of their family.
    adjusted = _holm_in(keys * 2, p)
    columns = zip(effects, keys, ratios, adjusted[: len(effects)], adjusted[len(effects) :], strict=True)
    return [
        attrs.evolve(
            each,
            p_adjusted=of_difference,
            family=families.told(each.kind, each.metric) if key else None,
            family_size=sizes[key] if key else 0,
            ratio=attrs.evolve(ratio, p_adjusted=of_ratio) if ratio else None,
        )
        for each, key, ratio, of_difference, of_ratio in columns
    ]


def _holm_in(families: Sequence[Hashable | None], p: Sequence[float | None]) -> list[float | None]:
    """Adjust each p within its family; one without a family stays as it is."""
    adjusted = [*p]
    for family in {*families} - {None}:
        numbers = [number for number, of in enumerate(families) if of == family]
        for number, one in zip(numbers, holm([p[number] for number in numbers]), strict=True):
            adjusted[number] = one
    return adjusted


def _judged(found: Effect, families: Families, scale: Scale, df: float | None) -> Effect:
    """Return an effect with its verdict, and with what one look could have seen at the level of its family."""
    verdict: Verdict = "interim" if families.unfinished else _verdict(found, scale)
    # What a single look could have seen says nothing of a run that is looked at more often.
    if found.stderr is None or df is None or found.difference is None or families.looking is not None:
        return attrs.evolve(found, verdict=verdict)
    alpha = SURE / max(1, found.family_size)
    seen = [minimal_detectable(found.stderr, df, alpha=alpha)] if found.stderr else []
    if found.ci_low is not None and found.ci_high is not None:
        # Where few questions differ, their standard error is too small.
        wider = float(t_quantile(df, 1 - alpha) / t_quantile(df, 1 - SURE))
        seen.append((found.ci_high - found.ci_low) / 2 * wider)
    # With clusters, this is the scatter of as many independent samples with the same standard error.
    sd = found.stderr * math.sqrt(found.n)
    margin = scale.least
    known = sd and found.n >= _FEWEST and math.isfinite(margin)
    needed = needed_between(sd, df, margin, alpha=alpha) if known else None
    return attrs.evolve(found, verdict=verdict, mde=max(seen, default=None), needed_samples=needed)


@attrs.frozen
class Drop:
    """By how much an effect is for the worse, and how sure that is more than a drop that is allowed.

    `low` and `high` are the 90 % interval of the drop: either end is a bound of 95 %. `p_adjusted` is the one-sided p
    of a drop that is no larger than what is allowed, adjusted in the effect's family.
    """

    effect: Effect
    low: float | None
    high: float | None
    p_adjusted: float | None


def drops_of(pairs: Sequence[Pair], families: Families, allowed: float | None) -> list[Drop]:
    """Return by how much the arm of each pair is worse, held against a drop that is `allowed`, or else the margin."""
    effects = effects_of(pairs, families)
    rule = Rule.on([*map(differences_of, pairs)], families.looking)
    sign = np.array([1.0 if pair.measure.scale.better == "lower" else -1.0 for pair in pairs])
    low, high = rule.interval(1 - 2 * SURE)
    center = sign * np.array([allowed_drop(pair.measure.scale, allowed) for pair in pairs])
    # Half of the two-sided p on the side of a larger drop; on the other side, what is left of 1.
    p = rule.p(center) / 2
    p = np.where(sign * (rule.moments.mean - center) > 0, p, 1 - p)
    known = [None if math.isnan(each) else float(each) for each in p]
    adjusted = _holm_in([effect.family for effect in effects], known)
    found = []
    for effect, worse, ends, one in zip(effects, sign, zip(low, high, strict=True), adjusted, strict=True):
        if math.isnan(ends[0]):
            # On a scale without an end, there is no interval if nothing changed.
            nothing = 0.0 if is_flat(effect) and effect.n > 1 else None
            found.append(Drop(effect, nothing, nothing, None))
        else:
            least, most = sorted(float(worse * end) for end in ends)
            found.append(Drop(effect, least, most, one))
    return found


def interactions_of(crossed: Sequence[tuple[Pair, Pair]], families: Families) -> tuple[Interaction, ...]:
    """Return how much more each condition does for an agent than for another, with p adjusted by family.

    Each is given by the condition and the baseline with the one agent, and with the other.
    """
    rows, both = [], []
    for pairs in crossed:
        mine, other = (_difference(pair.arm.values, pair.against.values) for pair in pairs)
        differences, shared = _differences(pairs[0].measure, mine, other)
        both.append((_mean_on(mine, shared), _mean_on(other, shared)))
        size = _size(pairs[0].measure, *(arm.values.means for pair in pairs for arm in (pair.arm, pair.against)))
        # A difference of two differences may be twice as large as the scale is wide.
        rows.append(attrs.evolve(differences, span=2 * differences.span, size=size))
    told = [
        Interaction(
            *pair.measure.scorer,
            condition=pair.arm.arm.condition,
            baseline=pair.against.arm.condition,
            agent=pair.arm.arm.agent,
            against_agent=with_other.arm.arm.agent,
            **{name: getattr(found, name) for name in _FIGURES},
            ci_low=found.low,
            ci_high=found.high,
            p_adjusted=None,
            effect=ours,
            against_effect=theirs,
        )
        for (pair, with_other), found, (ours, theirs) in zip(
            crossed, paired_effects(rows, looking=families.looking), both, strict=True
        )
    ]
    # An interaction that is 0 on every question is in no family, like an effect; see `_adjusted`.
    keys = [families.of(each.metric) if each.difference or each.stderr else None for each in told]
    adjusted = _holm_in(keys, [each.p for each in told])
    return tuple(attrs.evolve(each, p_adjusted=p) for each, p in zip(told, adjusted, strict=True))


def changed(pair: Pair) -> Iterator[tuple[int, float, float]]:
    """Yield the number of each sample whose mean differs between two arms, with the mean of `against` and of `arm`."""
    shared, before, now = _paired(pair.arm.values, pair.against.values)
    # Repetitions that were made in another order have sums that differ by rounding.
    differs = evened(now - before, _size(pair.measure, now, before)) != 0
    yield from zip(*(each[differs].tolist() for each in (shared, before, now)), strict=True)


def paired_values(arm: ArmValues, against: ArmValues) -> Iterator[tuple[int, float, float]]:
    """Yield the number of each sample that has a score in two arms, with the mean of `against` and of `arm`."""
    yield from zip(*(each.tolist() for each in _paired(arm.values, against.values)), strict=True)


def _verdict(found: Effect, scale: Scale) -> Verdict:
    if found.difference is None or found.ci_low is None or found.ci_high is None:
        return "unknown"
    if found.p_adjusted is not None and found.p_adjusted <= SURE:
        if found.hangs_on_lost:
            return "unclear"
        return "better" if (found.difference > 0) == (scale.better == "higher") else "worse"
    if found.worst_case is None:
        return "unclear"
    # A few questions that lose much are seldom among those that are asked.
    return "same" if max(-found.worst_case[0], found.worst_case[1]) <= scale.least else "unclear"


def _bounds(scale: Scale, arm: ArmValues, against: ArmValues) -> tuple[float, float] | tuple[None, None]:
    """Return the bounds of the effect, if scores are lost and the scale has an end."""
    _, (ours, theirs) = _observed(arm, against)
    is_lost = ours.lost.any() or theirs.lost.any()
    return (manski_bounds(ours, theirs, low=scale.low, high=scale.high) if is_lost else None) or (None, None)


def _is_unlike(*arms: ArmValues) -> bool:
    """Return whether the shares of neutral scores differ."""
    shares = [each.neutral.total() / max(1, each.neutral.total() + sum(each.values.counts)) for each in arms]
    return max(shares) - min(shares) > _UNLIKE


def _with_neutral(arm: ArmValues) -> ArmValues:
    return attrs.evolve(arm, lost=arm.lost + arm.neutral)


def _observed(*arms: ArmValues) -> tuple[IntArray, list[Observed]]:
    """Return all samples that any of the arms has a score for or lost one of, and what is known of the arms on them."""
    known = {sample for arm in arms for sample in arm.values.samples}
    # A sample that no arm has a score for cannot be scored, so that nothing is lost.
    lost = [
        arm.lost + Counter({sample: count for sample, count in arm.without.items() if sample in known}) for arm in arms
    ]
    samples, found = np.array(sorted(known.union(*lost)), np.int64), []
    for arm, lost_here in zip(arms, lost, strict=True):
        at = np.searchsorted(samples, arm.values.samples)
        sums, scored = np.zeros(len(samples)), np.zeros(len(samples), np.int64)
        scored[at] = arm.values.counts
        sums[at] = np.asarray(arm.values.means) * scored[at]
        found.append(Observed(sums, scored, np.array([lost_here[sample] for sample in samples.tolist()], np.int64)))
    return samples, found


def _mean_on(values: SampleValues, samples: IntArray) -> float | None:
    found = np.asarray(values.means)[np.isin(values.samples, samples, assume_unique=True)]
    return float(found.mean()) if len(found) else None


def _difference(arm: SampleValues, against: SampleValues) -> SampleValues:
    shared, before, now = _paired(arm, against)
    return attrs.evolve(arm, samples=array("q", shared), means=array("d", now - before))
