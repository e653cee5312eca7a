"""The figures of a run: means with intervals, effects, interactions, and where the variance comes from."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from keval.analysis.stats.averages import averages_of
from keval.analysis.stats.contrasts import ablated, contrasts_of
from keval.analysis.stats.cost_effectiveness import Expenses
from keval.analysis.stats.effects import (
    ArmValues,
    Crossed,
    Families,
    Kind,
    Measure,
    Pair,
    effects_of,
    interactions_of,
)
from keval.analysis.stats.intervals import Interval, Values, estimate, mean_intervals
from keval.analysis.stats.power import power_among
from keval.analysis.stats.score_sums import Cell, SampleValues
from keval.analysis.stats.tally import OwnPasts
from keval.analysis.stats.units import FloatArray
from keval.analysis.stats.variance import advice, flip_rate, pass_all_k, pass_at_k, pooled_sd, variance_components
from keval.records.effects import (
    EXPENSES,
    AgentProperty,
    Arm,
    Averages,
    Contrast,
    Effect,
    FamilyPower,
    Interaction,
    Repetitions,
    VarianceComponents,
)
from keval.records.manifest import Manifest, ScorerEntry
from keval.records.scores import Scale, Scorer, named_band
from keval.records.summary import ArmScore


class Findings:
    """What the scorers of a run found, by arm.

    `compliant` has the scores of compliant trials alone, of arms that require the use of tools. `failed` counts
    failed trials by the number of their sample, `answered` counts trials that did not fail, `expenses` are what the
    answers took, `own_pasts` what agents had of their own, and `clusters` has the number of the source of each sample.
    The attribute `answered` is of all arms, and `unfinished` says that trials or scores are yet to be made.
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
        own_pasts: Mapping[Arm, OwnPasts],
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
        self.own_pasts = own_pasts
        self._clusters = None if clusters is None else np.array(clusters, np.int64)
        self._arms = {(arm.agent, arm.condition): arm for arm in cells}
        # A condition that lacks one tool is compared with the one that has it; more would only dilute the others' p.
        made = {label for tools in ablated(manifest).values() for label in tools.values()}
        self._compared = {key: arm for key, arm in self._arms.items() if arm.condition not in made}
        self._values: dict[tuple[Arm, Scorer], ArmValues] = {}
        self.unfinished = self._is_unfinished()
        self._properties = self._find_properties()
        self._compared_scorers = [entry for entry in manifest.scorers if entry.scorer not in self._properties]

    def values(self, arm: Arm, scorer: Scorer) -> ArmValues:
        """Return what a scorer found in an arm, by sample."""
        if (arm, scorer) not in self._values:
            cell, compliant = self._cells[arm][scorer], self._compliant.get(arm)
            self._values[arm, scorer] = ArmValues(
                arm,
                cell.values(),
                cell.lost() + self._failed[arm],
                cell.left_out(),
                compliant[scorer].values() if compliant else None,
            )
        return self._values[arm, scorer]

    def measure(self, entry: ScorerEntry) -> Measure:
        """Return how a scorer's values are compared."""
        return Measure(entry.scorer, entry.scale, self._clusters)

    def families(self, *others: Findings) -> Families:
        """Return how effects are judged together in this run, or between it and others."""
        unfinished = any(each.unfinished for each in (self, *others))
        return Families(frozenset(self.manifest.primary), unfinished)

    def pairs(self, arms: Iterable[tuple[Kind, Arm, Arm]]) -> list[Pair]:
        """Return the first arm of each pair with the second, by each scorer."""
        return [
            Pair(kind, self.measure(entry), self.values(arm, entry.scorer), self.values(against, entry.scorer))
            for kind, arm, against in arms
            for entry in self._compared_scorers
        ]

    def arms(self) -> tuple[ArmScore, ...]:
        """Return the mean score of each arm by each scorer."""
        cells = [(arm, entry) for arm in self._cells for entry in self._scorers]
        values = [self._valued(self.values(arm, entry.scorer).values, entry) for arm, entry in cells]
        return tuple(
            self._arm(*cell, row, ends) for cell, row, ends in zip(cells, values, mean_intervals(values), strict=True)
        )

    def properties(self) -> tuple[AgentProperty, ...]:
        """Return what metrics say of each agent whatever it answers."""
        return tuple(each for found in self._properties.values() for each in found)

    def averages(self) -> Averages:
        """Return the average over all metrics of each arm that is compared, and how far averages differ."""
        values = {
            arm: [self.values(arm, entry.scorer).values for entry in self._scorers] for arm in self._compared.values()
        }
        numbers = [each.samples.max(initial=-1) for found in values.values() for each in found]
        return averages_of(self._scorers, values, int(max(numbers, default=-1)) + 1, self._clusters)

    def effects(self) -> tuple[Effect, ...]:
        """Return the effects of each condition against the baseline, and of each agent against the first."""
        return self.between(self._pairs())

    def between(self, pairs: Iterable[tuple[Kind, Arm, Arm]]) -> tuple[Effect, ...]:
        """Return the effects of the first arm of each pair against the second, by each scorer."""
        return effects_of(self.pairs(pairs), self.families())

    def family_power(self, effects: Sequence[Effect]) -> FamilyPower | None:
        """Return what a primary metric would bring; `None` if there is one, or nothing to choose from."""
        kind = effects[0].kind if effects else ""
        judged = [each for each in effects if each.kind == kind and each.family == "all" and each.n > 1]
        comparisons = len(judged)
        primary = max(Counter(each.scorer for each in judged).values(), default=0)
        if comparisons <= primary:
            return None
        df = float(np.median([each.n - 1 for each in judged]))
        return FamilyPower(comparisons, power_among(comparisons, df), primary, power_among(primary, df))

    def expenses(self) -> tuple[Effect, ...]:
        """Return the same effects on what an answer takes, as far as both arms are known."""
        return self.spent(self._pairs())

    def spent(self, pairs: Iterable[tuple[Kind, Arm, Arm]]) -> tuple[Effect, ...]:
        """Return the effects of the first arm of each pair against the second on what an answer takes."""
        scale = Scale(0.0, math.inf, better="lower")
        measures = {name: Measure((name, None), scale, self._clusters) for name in EXPENSES}
        found = [
            Pair(kind, measure, *(ArmValues(each, self._expenses[each].values(name)) for each in (arm, against)))
            for kind, arm, against in pairs
            for name, measure in measures.items()
        ]
        families = Families(unfinished=self.unfinished)
        return tuple(each for each in effects_of(found, families) if each.n)

    def contrasts(self) -> tuple[Contrast, ...]:
        """Return each condition against the one that it was changed from, where that is not the baseline's effect."""
        wanted = [
            each
            for each in contrasts_of(self.manifest)
            if each.kind != "change" or each.against != self.manifest.baseline
        ]
        found: list[Contrast] = []
        for kind in dict.fromkeys(each.kind for each in wanted):
            of_kind = [each for each in wanted if each.kind == kind]
            sides = [side for each in of_kind for side in self._sides(each)]
            effects, expenses = self.between(sides), self.spent(sides)
            for each in of_kind:
                found.append(attrs.evolve(each, effects=_of(each, effects), expenses=_of(each, expenses)))
        return tuple(found)

    def _sides(self, contrast: Contrast) -> Iterator[tuple[Kind, Arm, Arm]]:
        for agent in self.manifest.agents:
            yield "condition", self._arms[agent, contrast.condition], self._arms[agent, contrast.against]

    def interactions(self) -> tuple[Interaction, ...]:
        """Return how much more each condition does for each agent than for the first."""
        first, baseline = next(iter(self.manifest.agents)), self.manifest.baseline
        crossed = [
            Crossed(
                self.measure(entry),
                baseline,
                self._with_baseline(agent, condition, entry),
                self._with_baseline(first, condition, entry),
            )
            for agent, condition in self._compared
            if agent != first and condition != baseline
            for entry in self._compared_scorers
        ]
        return interactions_of(crossed, self.families())

    def _with_baseline(self, agent: str, condition: str, entry: ScorerEntry) -> tuple[ArmValues, ArmValues]:
        arm, against = (self._arms[agent, label] for label in (condition, self.manifest.baseline))
        return self.values(arm, entry.scorer), self.values(against, entry.scorer)

    def variance(self, effects: Iterable[Effect]) -> tuple[VarianceComponents, ...]:
        """Return where the variance of each scorer that gave a score comes from, pooled over arms and effects."""
        kinds: dict[Scorer, dict[str, list[float]]] = {}
        for each in effects:
            if each.stderr is not None:
                kinds.setdefault(each.scorer, {}).setdefault(each.kind, []).append(each.stderr**2 * each.n)
        found = []
        for entry in self._scorers:
            arms = [self.values(arm, entry.scorer).values for arm in self._cells]
            if any(len(arm.samples) for arm in arms):
                # Conditions are what a run is about; agents are compared where there is one condition.
                differences = next(iter(kinds.get(entry.scorer, {}).values()), None)
                found.append(variance(entry, arms, None if differences is None else float(np.mean(differences))))
        return tuple(found)

    def _pairs(self) -> Iterator[tuple[Kind, Arm, Arm]]:
        """Yield the arms that are compared: a kind, an arm, and the one that it is held against."""
        first, baseline = next(iter(self.manifest.agents)), self.manifest.baseline
        for (agent, condition), arm in self._compared.items():
            if condition != baseline:
                yield "condition", arm, self._arms[agent, baseline]
        for (agent, condition), arm in self._compared.items():
            if agent != first:
                yield "agent", arm, self._arms[first, condition]

    def _valued(self, values: SampleValues, entry: ScorerEntry) -> Values:
        clusters = None if self._clusters is None else self._clusters[values.samples]
        return Values(values.means, clusters, entry.scale.low, entry.scale.high)

    def _missing(self, arm: Arm, entry: ScorerEntry) -> int:
        cell = self._cells[arm][entry.scorer]
        expected = self._answered[arm] * entry.repetitions
        return max(0, expected - cell.scored - cell.neutral - cell.unscored)

    def _is_unfinished(self) -> bool:
        """Return whether trials or scores are yet to be made; in a play, a person may always ask once more."""
        tried = self.answered + sum(failed.total() for failed in self._failed.values())
        missing = (self._missing(arm, entry) for arm in self._cells for entry in self._scorers)
        return self.manifest.play or tried < self.manifest.trials or any(missing)

    def _find_properties(self) -> dict[Scorer, list[AgentProperty]]:
        """Return what metrics say of agents: of those that rate them, and of those that gave each one value always."""
        found: dict[Scorer, list[AgentProperty]] = {}
        for entry in self._scorers:
            if entry.ratings:
                found[entry.scorer] = [
                    AgentProperty(*entry.scorer, agent, rating.value, rating.derivation)
                    for agent, rating in entry.ratings.items()
                ]
            elif entry.of_agent and (values := self._constants(entry)):
                found[entry.scorer] = [AgentProperty(*entry.scorer, *each) for each in values.items()]
        return found

    def _constants(self, entry: ScorerEntry) -> dict[str, float]:
        """Return the value that a metric gave each agent always; nothing if it gave any agent several."""
        values: dict[str, list[FloatArray]] = {}
        for arm in self._cells:
            values.setdefault(arm.agent, []).append(self.values(arm, entry.scorer).values.means)
        known = {agent: joined for agent, of in values.items() if len(joined := np.concatenate(of))}
        if any(np.ptp(each) >= _DUST for each in known.values()):
            return {}
        return {agent: float(each[0]) for agent, each in known.items()}

    def _arm(self, arm: Arm, entry: ScorerEntry, values: Values, ends: Interval | None) -> ArmScore:
        cell = self._cells[arm][entry.scorer]
        found = estimate(values.values, values.clusters)
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
            missing=self._missing(arm, entry),
            ci_low=ends.low if ends else None,
            ci_high=ends.high if ends else None,
            method=ends.method if ends else None,
            sd=_deviation(self.values(arm, entry.scorer).values),
            repetitions=repetitions(entry, self.values(arm, entry.scorer).values),
        )


def _of(contrast: Contrast, effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return the effects of a contrast among those of all."""
    return tuple(
        each for each in effects if (each.condition, each.against.condition) == (contrast.condition, contrast.against)
    )


def _deviation(values: SampleValues) -> float | None:
    """Return the sample standard deviation of the values of all answers; `None` for fewer than two."""
    count = int(values.counts.sum())
    if count < 2:
        return None
    mean = float(values.means @ values.counts) / count
    within = values.squares - 2 * mean * values.means * values.counts + mean**2 * values.counts
    return math.sqrt(max(0.0, float(within.sum())) / (count - 1))


_DUST = 1e-9
"""Less than this is rounding."""
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


def variance(entry: ScorerEntry, arms: Sequence[SampleValues], difference: float | None) -> VarianceComponents:
    """Return where the variance of a scorer comes from, pooled over the arms; `difference` is as `advice` takes it."""
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
            difference=difference,
        ),
    )
