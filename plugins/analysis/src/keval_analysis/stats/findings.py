"""The figures of a run: means with intervals, effects, interactions, and where the variance comes from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress, product
from operator import mul
from typing import TYPE_CHECKING, get_args

import attrs

from keval.records.manifest import Manifest, ScorerEntry
from keval.records.scores import Scale, Scorer, named_band
from keval.store.run import Run
from keval_analysis.findings.effects import (
    EXPENSES,
    AgentProperty,
    Arm,
    Contrast,
    Effect,
    Expense,
    FamilyPower,
    Interaction,
    PartialEffect,
    Repetitions,
    VarianceComponents,
    WithoutLost,
)
from keval_analysis.findings.summary import ArmScore
from keval_analysis.stats.contrasts import contrasts_of, made_conditions
from keval_analysis.stats.intervals import Interval, Values, mean_intervals, quantile
from keval_analysis.stats.observations import Observations, numbered
from keval_analysis.stats.pairs import ArmValues, Families, Kind, Measure, Pair, agent_pairs
from keval_analysis.stats.score_sums import SampleValues, with_worst
from keval_analysis.stats.variance import advice, flip_rate, pass_all_k, pass_at_k, pooled_sd, variance_components
from keval_analysis.stats.win_rates import compared_with

if TYPE_CHECKING:
    from keval_analysis.stats.looking import Looking


def _compared(manifest: Manifest) -> dict[tuple[str, str], Arm]:
    """Return the arms that are compared with others of the run."""
    # A condition that lacks one part is compared with the one that has it; more would only dilute the others' p.
    made = made_conditions(manifest)
    arms = product(manifest.agents, (condition for condition in manifest.conditions if condition not in made))
    return {arm: Arm(*arm, manifest.run) for arm in arms}


def compared_arms(manifest: Manifest) -> Iterator[tuple[Kind, Arm, Arm]]:
    """Yield the arms that a run compares: a kind, an arm, and the one that it is held against."""
    arms, baseline = _compared(manifest), manifest.baseline
    for (agent, condition), arm in arms.items():
        if condition != baseline:
            yield "condition", arm, arms[agent, baseline]
    for agent, other in agent_pairs([*manifest.agents]):
        yield from (("agent", arm, arms[other, condition]) for (of, condition), arm in arms.items() if of == agent)


def _is_tool(part: str | None, name: str) -> bool:
    """Return whether a part that is left out is a tool of this name; the part may have its context before it."""
    return part is not None and (part == name or part.endswith(f"__{name}"))


_EVERY: frozenset[Kind] = frozenset(get_args(Kind))


class Findings:
    """What the scorers of a run found, by arm.

    `own_pasts` are what agents had of their own, `answered` is how many trials did not fail, `beyond` is as in
    `Observations`, and `unfinished` says that trials or scores are yet to be made.
    """

    def __init__(self, observed: Observations) -> None:
        self.manifest = observed.manifest
        self._scorers = observed.manifest.scorers
        self._observed = {each.arm: each for each in observed.arms.values()}
        self.answered = sum(each.answered for each in self._observed.values())
        self.own_pasts = {arm: each.own_pasts for arm, each in self._observed.items()}
        self.beyond = observed.beyond
        self._clusters = observed.clusters
        self.number = observed.number
        self._arms = {(arm.agent, arm.condition): arm for arm in self._observed}
        self._compared = _compared(self.manifest)
        self._values: dict[tuple[Arm, Scorer], ArmValues] = {}
        tried = self.beyond + self.answered + sum(each.failed.total() for each in self._observed.values())
        missing = (self._missing(arm, entry) for arm in self._observed for entry in self._scorers)
        # In a play, a person may always ask once more.
        self.unfinished = self.manifest.play or tried < self.manifest.trials or any(missing)
        self._properties = self._find_properties()
        self._compared_with = compared_with(self.manifest)
        self._compared_scorers = [entry for entry in self._scorers if entry.scorer not in self._properties]

    def values(self, arm: Arm, scorer: Scorer) -> ArmValues:
        """Return what a scorer found in an arm, by sample."""
        if (arm, scorer) not in self._values:
            observed = self._observed[arm]
            cell = observed.cells[scorer]
            lost, without, neutral = cell.without_value()
            compliant = observed.compliant[scorer].values() if observed.compliant else None
            # A failed trial is lost to every scorer.
            found = ArmValues(arm, cell.values(), lost + observed.failed, without, neutral, compliant)
            self._values[arm, scorer] = self._with_worst(found, observed.failed, scorer)
        return self._values[arm, scorer]

    def _with_worst(self, found: ArmValues, failed: Counter[int], scorer: Scorer) -> ArmValues:
        """Return what was found with the lost scores that count as the worst, as the config says."""
        scale = next(entry.scale for entry in self._scorers if entry.scorer == scorer)
        if (self.manifest.failed, self.manifest.unscored) == ("omit", "omit") or math.isinf(scale.high):
            return found
        # What no arm has a score for cannot be scored.
        known = {sample for arm in self._observed.values() for sample in arm.cells[scorer].values().samples}
        chosen = {"failed": self.manifest.failed == "worst", "unscored": self.manifest.unscored == "worst"}

        def split(counts: Counter[int], part: str) -> tuple[Counter[int], Counter[int]]:
            """Return which of these count as the worst, and which are lost."""
            worst = Counter({sample: n for sample, n in counts.items() if chosen[part] and sample in known})
            return worst, counts - worst

        (worst, left), (worse, lost) = split(failed, "failed"), split(found.lost - failed, "unscored")
        worst_of_all, without = split(found.without, "unscored")
        if not (worst := worst + worse + worst_of_all):
            return found
        values = with_worst(found.values, worst, scale)
        return attrs.evolve(found, values=values, lost=left + lost, without=without, without_lost=found)

    def unit(self, sample: int) -> int:
        """Return the number of what is independent of others, by the number of a sample: its source, or itself."""
        return sample if self._clusters is None else self._clusters[sample]

    def measure(self, entry: ScorerEntry, against: Arm | None = None) -> Measure:
        """Return how a scorer's values are compared, with those of an arm if it is given."""
        if against is not None and against.condition == self._compared_with.get(entry.scorer):
            return Measure(entry.scorer, entry.scale, self._clusters, span=entry.scale.high)  # all of those are 0
        return Measure(entry.scorer, entry.scale, self._clusters)

    def families(self, *others: Findings) -> Families:
        """Return how effects are judged together in this run, or between it and others."""
        unfinished = any(each.unfinished for each in (self, *others))
        looked = [each._looking for each in (self, *others) if each._looking is not None]
        # Two runs have no schedule of looks in common, so the comparison has to hold at any look.
        looking = attrs.evolve(looked[0], look=None, looks=None) if looked and others else next(iter(looked), None)
        conditions = {condition for _, condition in self._compared}
        beside: frozenset[Kind] = frozenset({"agent"} if len(conditions) > 1 and not others else ())
        return Families(frozenset(self.manifest.primary), unfinished, looking, beside)

    def pairs(self, arms: Iterable[tuple[Kind, Arm, Arm]]) -> list[Pair]:
        """Return the first arm of each pair with the second, by each scorer."""
        return [
            Pair(kind, self.measure(entry, against), self.values(arm, entry.scorer), self.values(against, entry.scorer))
            for kind, arm, against in arms
            for entry in self._compared_scorers
            # Answers that a judge compares with are not compared with each other.
            if not arm.condition == against.condition == self._compared_with.get(entry.scorer)
        ]

    def arms(self) -> tuple[ArmScore, ...]:
        """Return the mean score of each arm by each scorer."""
        cells = [(arm, entry) for arm in self._observed for entry in self._scorers]
        rows = []
        for arm, entry in cells:
            found = self.values(arm, entry.scorer).values
            units = None if self._clusters is None else [self._clusters[sample] for sample in found.samples]
            rows.append(Values(found.means, units, entry.scale.low, entry.scale.high))
        ends = mean_intervals(rows)
        return tuple(self._arm(*cell, row, end) for cell, row, end in zip(cells, rows, ends, strict=True))

    def properties(self) -> tuple[AgentProperty, ...]:
        """Return what metrics say of each agent whatever it answers."""
        return tuple(each for found in self._properties.values() for each in found)

    def effects(self) -> tuple[Effect, ...]:
        """Return the effects of conditions against the baseline, and of agents as `agent_pairs` has them."""
        return self.between(compared_arms(self.manifest))

    def between(
        self, pairs: Iterable[tuple[Kind, Arm, Arm]], beside: frozenset[Kind] = frozenset()
    ) -> tuple[Effect, ...]:
        """Return the effects of the first arm of each pair against the second, by each scorer.

        Those of the kinds `beside` are exploratory, and so are others as `families` says.
        """
        families = self.families()
        families = attrs.evolve(families, beside=families.beside | beside)
        compared = self.pairs(pairs)
        found = _effects(compared, families)
        if not any(side.without_lost for pair in compared for side in (pair.arm, pair.against)):
            return found
        others = [
            attrs.evolve(each, arm=each.arm.without_lost or each.arm, against=each.against.without_lost or each.against)
            for each in compared
        ]
        kept = (
            WithoutLost(each.n, each.difference, each.ci_low, each.ci_high, each.verdict)
            for each in _effects(others, families)
        )
        return tuple(attrs.evolve(each, without_lost=other) for each, other in zip(found, kept, strict=True))

    def family_power(self, effects: Sequence[Effect]) -> FamilyPower | None:
        """Return what a primary metric would bring; `None` if there is one, or nothing to choose from."""
        kind = effects[0].kind if effects else ""
        judged = [each for each in effects if each.kind == kind and each.family == "all" and each.n > 1]
        comparisons = len(judged)
        primary = max(Counter(each.scorer for each in judged).values(), default=0)
        df = quantile([each.n - 1 for each in judged], 0.5)
        if comparisons <= primary or df is None:
            return None
        from keval_analysis.stats.power import power_among  # as in `_effects`

        return FamilyPower(comparisons, power_among(comparisons, df), primary, power_among(primary, df))

    def expenses(self) -> tuple[Effect, ...]:
        """Return the same effects on what an answer takes, as far as both arms are known."""
        return self.spent(compared_arms(self.manifest))

    def spent(self, pairs: Iterable[tuple[Kind, Arm, Arm]]) -> tuple[Effect, ...]:
        """Return the effects of the first arm of each pair against the second on what an answer takes."""
        scale = Scale(0.0, math.inf, better="lower")
        measures = {name: Measure((name, None), scale, self._clusters, has_ratio=True) for name in EXPENSES}

        def spent(arm: Arm, name: Expense) -> ArmValues:
            return ArmValues(arm, self._observed[arm].expenses.values(name))

        found = [
            Pair(kind, measure, spent(arm, name), spent(against, name))
            for kind, arm, against in pairs
            for name, measure in measures.items()
        ]
        families = Families(unfinished=self.unfinished, looking=self._looking, beside=_EVERY)
        return tuple(each for each in _effects(found, families) if each.n)

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
            effects, expenses = self.between(sides, beside=_EVERY), self.spent(sides)
            for each in of_kind:
                told = _of(each, effects)
                if each.kind == "ablation" and each.part == "tool":
                    told = self._where_called(each, told)
                found.append(attrs.evolve(each, effects=told, expenses=_of(each, expenses)))
        return tuple(found)

    def _where_called(self, contrast: Contrast, effects: Sequence[Effect]) -> tuple[Effect, ...]:
        """Return the effects of leaving out a tool, each with that on the samples in which the tool was called."""
        pairs = []
        for pair in self.pairs(self._sides(contrast)):
            called = self._observed[pair.against.arm].called
            samples = set[int]().union(*(of for name, of in called.items() if _is_tool(contrast.left_out, name)))
            arm, against = (attrs.evolve(side, values=side.values.of(samples)) for side in (pair.arm, pair.against))
            pairs.append(attrs.evolve(pair, arm=arm, against=against))
        # The data chose these questions, so that neither p nor verdict is told of them.
        partial = {(each.agent, each.scorer): each for each in _effects(pairs, Families())}
        return tuple(
            attrs.evolve(each, where_called=PartialEffect(of.n, of.difference, of.ci_low, of.ci_high))
            if (of := partial[each.agent, each.scorer]).n
            else each
            for each in effects
        )

    def _sides(self, contrast: Contrast) -> Iterator[tuple[Kind, Arm, Arm]]:
        for agent in self.manifest.agents:
            yield "condition", self._arms[agent, contrast.condition], self._arms[agent, contrast.against]

    def interactions(self) -> tuple[Interaction, ...]:
        """Return how much more each condition does for each agent than for the first."""
        first, baseline = next(iter(self.manifest.agents)), self.manifest.baseline

        def effect(agent: str, condition: str, entry: ScorerEntry) -> Pair:
            arms = (self.values(self._arms[agent, label], entry.scorer) for label in (condition, baseline))
            return Pair("condition", self.measure(entry), *arms)

        crossed = [
            (effect(agent, condition, entry), effect(first, condition, entry))
            for agent, condition in self._compared
            if agent != first and condition != baseline
            for entry in self._compared_scorers
        ]
        if not crossed:
            return ()
        from keval_analysis.stats.effects import interactions_of  # as in `_effects`

        return interactions_of(crossed, self.families())

    def variance(self, effects: Iterable[Effect]) -> tuple[VarianceComponents, ...]:
        """Return where the variance of each scorer that gave a score comes from, pooled over arms and effects."""
        kinds: dict[Scorer, dict[str, list[float]]] = {}
        for each in effects:
            if each.stderr is not None:
                kinds.setdefault(each.scorer, {}).setdefault(each.kind, []).append(each.stderr**2 * each.n)
        found = []
        for entry in self._scorers:
            unasked = self._compared_with.get(entry.scorer)
            arms = [self.values(arm, entry.scorer).values for arm in self._observed if arm.condition != unasked]
            if any(len(arm.samples) for arm in arms):
                # Conditions are what a run is about; agents are compared where there is one condition.
                differences = next(iter(kinds.get(entry.scorer, {}).values()), None)
                mean = None if differences is None else math.fsum(differences) / len(differences)
                found.append(variance(entry, arms, mean))
        return tuple(found)

    def _missing(self, arm: Arm, entry: ScorerEntry) -> int:
        cell = self._observed[arm].cells[entry.scorer]
        expected = self._observed[arm].answered * entry.repetitions
        return max(0, expected - cell.scored - cell.neutral - cell.unscored)

    @cached_property
    def _looking(self) -> Looking | None:
        """How the run is looked at before its end; `None` of one that is looked at when it is finished, and of a play.

        An unfinished run may be looked at at any time.
        """
        entry = self.manifest.looking
        if self.manifest.play or (entry is None and not self.unfinished):
            return None
        from keval_analysis.stats.looking import Looking  # as in `_effects`

        if entry is None or entry.looks is None or self.unfinished:
            return Looking()
        # A run that did not end early was looked at for the last time at its end.
        return Looking(entry.look or entry.looks, entry.looks)

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
        values: dict[str, list[float]] = {}
        for arm in self._observed:
            if means := self.values(arm, entry.scorer).values.means:
                values.setdefault(arm.agent, []).extend(means)
        if any(max(each) - min(each) >= _DUST for each in values.values()):
            return {}
        return {agent: each[0] for agent, each in values.items()}

    def _arm(self, arm: Arm, entry: ScorerEntry, values: Values, ends: Interval | None) -> ArmScore:
        cell = self._observed[arm].cells[entry.scorer]
        found = values.estimate
        return ArmScore(
            arm.agent,
            arm.condition,
            *entry.scorer,
            n=found.n,
            mean=found.mean,
            stderr=found.stderr,
            band=None if found.mean is None else named_band(entry.scale.bands, found.mean),
            **{name: getattr(cell, name) for name in ("scored", "neutral", "unscored", "failed")},
            failures=dict(cell.failures.counts),
            failure_messages=dict(cell.failures.messages),
            missing=self._missing(arm, entry),
            ci_low=ends.low if ends else None,
            ci_high=ends.high if ends else None,
            method=ends.method if ends else None,
            sd=_deviation(self.values(arm, entry.scorer).values),
            repetitions=repetitions(entry, self.values(arm, entry.scorer).values),
        )


def read_findings(run: Run, numbers: dict[str, int] | None = None) -> Findings:
    """Read what the scorers of a run found; `numbers` are those of its samples, by id. Raises RunError."""
    observed = Observations(run.manifest, numbered(run.samples.ids) if numbers is None else numbers, spending=False)
    return Findings(observed.read(run.trials_as_finished(), run.scores_as_made()))


def _effects(pairs: Sequence[Pair], families: Families) -> tuple[Effect, ...]:
    """Return the effect of each pair; a run of one arm has none."""
    if not pairs:
        return ()
    from keval_analysis.stats.effects import effects_of  # NumPy and SciPy take a third of a second and 40 MB to import

    return effects_of(pairs, families)


def _of(contrast: Contrast, effects: Iterable[Effect]) -> tuple[Effect, ...]:
    return tuple(
        each for each in effects if (each.condition, each.against.condition) == (contrast.condition, contrast.against)
    )


def _deviation(values: SampleValues) -> float | None:
    """Return the sample standard deviation of the values of all answers; `None` for fewer than two."""
    count = sum(values.counts)
    if count < 2:
        return None
    mean = math.fsum(map(mul, values.means, values.counts)) / count
    between = (n * (each - mean) ** 2 for n, each in zip(values.counts, values.means, strict=True))
    return math.sqrt((math.fsum(values.squares) + math.fsum(between)) / (count - 1))


_DUST = 1e-9
"""Less than this is rounding."""
_MOST = 10
"""The largest k of pass@k and pass^k that is told."""


def repetitions(entry: ScorerEntry, values: SampleValues) -> Repetitions | None:
    """Return how the repetitions of samples differ; `None` if no sample was scored more than once."""
    again = [n > 1 for n in values.counts]
    counts, passed = ([*compress(each, again)] for each in (values.counts, values.passed))
    if not counts:
        return None
    sd = pooled_sd(counts, [*compress(values.squares, again)])
    if entry.pass_threshold is None:
        return Repetitions(len(counts), sd)
    ks = range(1, min(max(counts), _MOST) + 1)
    return Repetitions(
        samples=len(counts),
        sd=sd,
        threshold=entry.pass_threshold,
        flip_rate=flip_rate(counts, passed),
        pass_at={str(k): found for k in ks if (found := pass_at_k(counts, passed, k)) is not None},
        pass_all={str(k): found for k in ks if (found := pass_all_k(counts, passed, k)) is not None},
    )


def variance(entry: ScorerEntry, arms: Sequence[SampleValues], difference: float | None) -> VarianceComponents:
    """Return where the variance of a scorer comes from, pooled over the arms; `difference` is as `advice` takes it."""
    found = variance_components([arm.graded for arm in arms])
    samples = sum(len(arm.samples) for arm in arms)
    trials = sum(sum(arm.counts) for arm in arms)
    gradings = sum(sum(arm.graded.gradings) for arm in arms) / max(1, trials)
    told = advice(found, repetitions=trials / max(1, samples), gradings=gradings, difference=difference)
    return VarianceComponents(*entry.scorer, found.question, found.repetition, found.judging, told)
