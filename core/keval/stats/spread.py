"""How repetitions differ within one arm, and where the variance of a scorer comes from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keval.manifest import ScorerEntry
from keval.stats.cells import SampleValues
from keval.stats.components import advice, variance_components
from keval.stats.repeats import flip_rate, pass_all_k, pass_at_k, pooled_sd
from keval.variation import Repetitions, VarianceComponents

__all__ = ["repetitions", "variance"]

_MOST = 10
"""The largest k of pass@k and pass^k that is told."""


def repetitions(entry: ScorerEntry, values: SampleValues) -> Repetitions | None:
    """Return how the repetitions of samples differ; `None` if no sample was scored more than once."""
    again = values.counts > 1
    if not again.any():
        return None
    counts, passed = values.counts[again], values.passed[again]
    sd = pooled_sd(counts, values.means[again] * counts, values.squares[again])
    if entry.pass_threshold is None:
        return Repetitions(int(again.sum()), sd)
    ks = range(1, min(int(counts.max()), _MOST) + 1)
    return Repetitions(
        samples=int(again.sum()),
        sd=sd,
        threshold=entry.pass_threshold,
        flip_rate=flip_rate(counts, passed),
        pass_at={str(k): found for k in ks if (found := pass_at_k(counts, passed, k)) is not None},
        pass_all={str(k): found for k in ks if (found := pass_all_k(counts, passed, k)) is not None},
    )


def variance(entry: ScorerEntry, arms: Sequence[SampleValues]) -> VarianceComponents:
    """Return where the variance of a scorer comes from, pooled over the arms."""
    found = variance_components([arm.graded for arm in arms])
    samples = np.mean([len(arm.samples) for arm in arms])
    trials = sum(int(arm.counts.sum()) for arm in arms)
    gradings = sum(int(arm.graded.gradings.sum()) for arm in arms)
    return VarianceComponents(
        metric=entry.metric,
        judge=entry.judge,
        question=found.question,
        repetition=found.repetition,
        judging=found.judging,
        advice=advice(
            found,
            samples=float(samples),
            repetitions=trials / max(1.0, float(samples) * len(arms)),
            gradings=gradings / max(1, trials),
        ),
    )
