"""The figures of a run: means with intervals, effects, interactions, and where the variance comes from."""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from keval.analysis.stats.contrasts import ablated, contrasts_of
from keval.analysis.stats.cost_effectiveness import EXPENSES, Expenses
from keval.analysis.stats.effects import (
    ArmValues,
    Kind,
    Measure,
    adjust,
    adjust_interactions,
    effect,
    interaction,
)
from keval.analysis.stats.intervals import estimate, mean_interval
from keval.analysis.stats.score_sums import Cell, SampleValues
from keval.analysis.stats.variance import advice, flip_rate, pass_all_k, pass_at_k, pooled_sd, variance_components
from keval.records.effects import Arm, Contrast, Effect, Interaction, Repetitions, VarianceComponents
from keval.records.manifest import Manifest, ScorerEntry
from keval.records.scores import Scale, Scorer, named_band
from keval.records.summary import ArmScore


class Findings:
    """What the scorers of a run found, by arm.

    `compliant` has the scores of compliant trials alone, of arms that require the use of tools. `failed` counts
    failed trials by the number of their sample, `answered` counts trials that did not fail, `expenses` are what the
    answers took, and `clusters` has the number of the source of each sample. The attribute `answered` is of all arms.
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        cells: Mapping[Arm, Mapping[Scorer, Cell]],
        compliant: Mapping[Arm, Mapping[Scorer, Cell]],
        failed: Mapping[Arm, Counter[int]],
        answered: Mapping[Arm, int],
        expenses: Mapping[Arm, Expenses],
        clusters: array[int] | None,
    ) -> None:
        self.manifest = manifest
        self._scorers = manifest.scorers
        self._cells = cells
        self._compliant = compliant
        self._failed = failed
        self._answered = answered
        self.answered = sum(answered.values())
        self._expenses = expenses
        self._clusters = None if clusters is None else np.array(clusters, np.int64)
        self._arms = {(arm.agent, arm.condition): arm for arm in cells}
        # A condition that lacks one tool is compared with the one that has it; more would only dilute the others' p.
        made = {label for tools in ablated(manifest).values() for label in tools.values()}
        self._compared = {key: arm for key, arm in self._arms.items() if arm.condition not in made}
        self._values: dict[tuple[Arm, Scorer], ArmValues] = {}

    def values(self, arm: Arm, scorer: Scorer) -> ArmValues:
        """Return what a scorer found in an arm, by sample."""
        if (arm, scorer) not in self._values:
            cell, compliant = self._cells[arm][scorer], self._compliant.get(arm)
            self._values[arm, scorer] = ArmValues(
                arm, cell.values(), cell.lost() + self._failed[arm], compliant[scorer].values() if compliant else None
            )
        return self._values[arm, scorer]

    def measure(self, entry: ScorerEntry) -> Measure:
        """Return how a scorer's values are compared."""
        return Measure(entry.scorer, entry.scale, self._clusters, self.manifest.seed)

    def arms(self) -> tuple[ArmScore, ...]:
        """Return the mean score of each arm by each scorer."""
        return tuple(self._arm(arm, entry) for arm in self._cells for entry in self._scorers)

    def effects(self) -> tuple[Effect, ...]:
        """Return the effects of each condition against the baseline, and of each agent against the first."""
        return self.between(self._pairs())

    def between(self, pairs: Iterable[tuple[Kind, Arm, Arm]]) -> tuple[Effect, ...]:
        """Return the effects of the first arm of each pair against the second, by each scorer."""
        found = [
            effect(kind, self.measure(entry), self.values(arm, entry.scorer), self.values(against, entry.scorer))
            for kind, arm, against in pairs
            for entry in self._scorers
        ]
        return tuple(adjust(found, {entry.scorer: entry.scale for entry in self._scorers}))

    def expenses(self) -> tuple[Effect, ...]:
        """Return the same effects on what an answer takes, as far as both arms are known."""
        return self.spent(self._pairs())

    def spent(self, pairs: Iterable[tuple[Kind, Arm, Arm]]) -> tuple[Effect, ...]:
        """Return the effects of the first arm of each pair against the second on what an answer takes."""
        scale = Scale(0.0, math.inf, better="lower")
        measures = {name: Measure((name, None), scale, self._clusters, self.manifest.seed) for name in EXPENSES}
        found = [
            effect(kind, measure, *(ArmValues(each, self._expenses[each].values(name)) for each in (arm, against)))
            for kind, arm, against in pairs
            for name, measure in measures.items()
        ]
        return tuple(adjust([each for each in found if each.n], {each.scorer: scale for each in measures.values()}))

    def contrasts(self) -> tuple[Contrast, ...]:
        """Return each condition against the one that it was changed from, where that is not the baseline's effect."""
        scales = {entry.scorer: entry.scale for entry in self._scorers}
        wanted = [
            each
            for each in contrasts_of(self.manifest)
            if each.kind != "change" or each.against != self.manifest.baseline
        ]
        found: list[Contrast] = []
        for kind in dict.fromkeys(each.kind for each in wanted):
            of_kind = [each for each in wanted if each.kind == kind]
            counts = [[*self._contrasted(each)] for each in of_kind]
            adjusted = iter(adjust([one for effects in counts for one in effects], scales))
            for each, effects in zip(of_kind, counts, strict=True):
                told = tuple(itertools.islice(adjusted, len(effects)))
                found.append(attrs.evolve(each, effects=told, expenses=self.spent(self._sides(each))))
        return tuple(found)

    def _sides(self, contrast: Contrast) -> Iterator[tuple[Kind, Arm, Arm]]:
        for agent in self.manifest.agents:
            yield "condition", self._arms[agent, contrast.condition], self._arms[agent, contrast.against]

    def _contrasted(self, contrast: Contrast) -> Iterator[Effect]:
        for _, arm, against in self._sides(contrast):
            for entry in self._scorers:
                ours, theirs = self.values(arm, entry.scorer), self.values(against, entry.scorer)
                yield effect("condition", self.measure(entry), ours, theirs)

    def interactions(self) -> tuple[Interaction, ...]:
        """Return how much more each condition does for each agent than for the first."""
        first, baseline = next(iter(self.manifest.agents)), self.manifest.baseline
        found = [
            interaction(
                self.measure(entry),
                baseline,
                [self.values(self._arms[agent, label], entry.scorer) for label in (condition, baseline)],
                [self.values(self._arms[first, label], entry.scorer) for label in (condition, baseline)],
            )
            for agent, condition in self._compared
            if agent != first and condition != baseline
            for entry in self._scorers
        ]
        return tuple(adjust_interactions(found))

    def variance(self) -> tuple[VarianceComponents, ...]:
        """Return where the variance of each scorer that gave a score comes from, pooled over arms."""
        found = ((entry, [self.values(arm, entry.scorer).values for arm in self._cells]) for entry in self._scorers)
        return tuple(variance(entry, arms) for entry, arms in found if any(len(arm.samples) for arm in arms))

    def _pairs(self) -> Iterator[tuple[Kind, Arm, Arm]]:
        """Yield the arms that are compared: a kind, an arm, and the one that it is held against."""
        first, baseline = next(iter(self.manifest.agents)), self.manifest.baseline
        for (agent, condition), arm in self._compared.items():
            if condition != baseline:
                yield "condition", arm, self._arms[agent, baseline]
        for (agent, condition), arm in self._compared.items():
            if agent != first:
                yield "agent", arm, self._arms[first, condition]

    def _arm(self, arm: Arm, entry: ScorerEntry) -> ArmScore:
        values, cell = self.values(arm, entry.scorer).values, self._cells[arm][entry.scorer]
        clusters = None if self._clusters is None else self._clusters[values.samples]
        found = estimate(values.means, clusters)
        ends = mean_interval(values.means, clusters=clusters, low=entry.scale.low, high=entry.scale.high)
        expected = self._answered[arm] * entry.repetitions
        return ArmScore(
            agent=arm.agent,
            condition=arm.condition,
            metric=entry.metric,
            judge=entry.judge,
            n=found.n,
            mean=found.mean,
            stderr=found.stderr,
            band=None if found.mean is None else named_band(entry.scale.bands, found.mean),
            scored=cell.scored,
            neutral=cell.neutral,
            unscored=cell.unscored,
            failed=cell.failed,
            failures=dict(cell.failures.counts),
            failure_messages=dict(cell.failures.messages),
            missing=max(0, expected - cell.scored - cell.neutral - cell.unscored),
            ci_low=ends.low if ends else None,
            ci_high=ends.high if ends else None,
            method=ends.method if ends else None,
            repetitions=repetitions(entry, values),
        )


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
