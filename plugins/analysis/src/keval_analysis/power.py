"""Planning a run: how many questions show a difference, and what the run would cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs

from keval.errors import ConfigError, suggestion
from keval.plan.plan import Plan
from keval.records.manifest import Manifest
from keval.records.scores import Scale, Scorer
from keval.seams.interfaces import AgentChecker
from keval.store.run import Run
from keval_analysis.estimate import Estimate, estimate
from keval_analysis.findings.effects import SURE, Arm, Effect, Family
from keval_analysis.findings.summary import ArmTrials, JudgingTotal, Summary, UsageTotal
from keval_analysis.sections import Wanted, scales_of
from keval_analysis.stats.pairs import Families, agent_pairs

if TYPE_CHECKING:
    from keval_analysis.stats.simulated_power import SimulatedRuns
    from keval_analysis.stats.units import FloatArray


@attrs.frozen(eq=False)
class Pilot:
    """An earlier run: what it was made of, what it found, and how much each question differed in each effect."""

    manifest: Manifest
    summary: Summary
    differences: Mapping[tuple[Arm, Arm, Scorer], FloatArray]

    @classmethod
    def of(cls, run: Run) -> Pilot:
        """Read a run. Raises RunError: it is damaged."""
        import numpy as np  # takes a tenth of a second to import

        from keval_analysis.stats.effects import differences_of
        from keval_analysis.stats.findings import read_findings

        findings, summary = read_findings(run), run.summary()
        # Each pair of arms has an effect for every scorer.
        sides = ((each.kind, Arm(each.agent, each.condition, run.id), each.against) for each in summary.effects)
        found = {
            (pair.arm.arm, pair.against.arm, pair.measure.scorer): np.asarray(differences_of(pair).values)
            for pair in findings.pairs(dict.fromkeys(sides))
        }
        return cls(run.manifest, summary, found)

    def differences_of(self, effect: Effect) -> FloatArray:
        """Return how much each question differed in one of its effects."""
        arm = Arm(effect.agent, effect.condition, self.manifest.run)
        return self.differences[arm, effect.against, effect.scorer]


@attrs.frozen
class Forecast:
    """What a number of trials would take at the pilot's rates, agents and judges together; `None` is unknown."""

    questions: int
    trials: int
    tokens: float | None = None
    usd: float | None = None
    seconds: float | None = None


def trials_for(plan: Plan, questions: int) -> int:
    """Return how many trials so many questions take."""
    return math.ceil(plan.trial_count * questions / len(plan.samples))


def forecast(plan: Plan, questions: int, pilot: Pilot | None) -> Forecast:
    """Return what so many questions would take at the pilot's rates."""
    trials = trials_for(plan, questions)
    arms = {(arm.agent, arm.condition): arm for arm in pilot.summary.trials if arm.trials} if pilot else {}
    planned = [(agent.label, arm.label) for agent in plan.agents for arm in plan.arms]
    if pilot is None or not all(arm in arms for arm in planned):
        return Forecast(questions, trials)
    each = trials / len(planned)
    judging = [judged for judged in pilot.summary.judging if (judged.agent, judged.condition) in planned]

    def total(parts: Sequence[tuple[float | None, int]]) -> float | None:
        """Add up amounts that so many trials of the pilot took."""
        known = [amount / count for amount, count in parts if amount is not None]
        return each * sum(known) if len(known) == len(parts) else None

    counts = {arm: arms[arm].trials for arm in planned}
    spent: list[tuple[ArmTrials | JudgingTotal, int]] = [(arms[arm], counts[arm]) for arm in planned]
    spent += [(judged, counts[judged.agent, judged.condition]) for judged in judging]
    usages = [(spender.usage, count) for spender, count in spent]
    # The cost of a trial has that of its attempts that were given up, and its usage has not.
    usages += [(arms[arm].given_up.usage, counts[arm]) for arm in planned if arms[arm].given_up.model_calls]
    return Forecast(
        questions=questions,
        trials=trials,
        tokens=total([(_tokens(usage), count) for usage, count in usages]),
        usd=total([(None if spender.cost.unknown else spender.cost.usd, count) for spender, count in spent]),
        seconds=_seconds(plan, trials, pilot),
    )


def _tokens(usage: UsageTotal) -> int | None:
    """Return input and output tokens; `None` if some are unknown, as a sum of the others would look like all."""
    if usage.input_tokens is None or usage.output_tokens is None or usage.unknown:
        return None
    return usage.input_tokens + usage.output_tokens


def _seconds(plan: Plan, trials: int, pilot: Pilot) -> float | None:
    """Return how long so many trials take at the pilot's pace, with as many at once as are planned."""
    done, elapsed = sum(arm.trials for arm in pilot.summary.trials), pilot.summary.elapsed
    if elapsed is None or not done:
        return None
    before = (pilot.manifest.config.get("execution") or {}).get("max_concurrent")
    now = plan.evaluation.execution.max_concurrent
    faster = now / before if isinstance(before, int) and before > 0 else 1.0
    return elapsed / done * trials / faster


@attrs.frozen
class Assumption:
    """How questions differ where nothing is known: the `changes`, as shares of the scale, with how likely each is."""

    name: str
    changes: Mapping[float, float]
    meaning: str

    @property
    def share(self) -> float:
        """The standard deviation of the changes."""
        return math.sqrt(sum(likely * change**2 for change, likely in self.changes.items()))


ASSUMPTIONS = (
    Assumption(
        "worst",
        {-1.0: 0.5, 1.0: 0.5},
        "every question goes from one end of the scale to the other, half of them each way",
    ),
    Assumption("usual", {-1.0: 0.1, 0.0: 0.8, 1.0: 0.1}, "one question in five goes from failed to passed, or back"),
)


@attrs.frozen
class PowerTarget:
    """What a run is to show: an effect in the units of the scale, or as a share of it, and with which power."""

    effect: float | None = None
    is_share: bool = False
    power: float = 0.8

    def on(self, scale: Scale) -> float | None:
        """Return the effect in the units of a scale; `None` without one, or for a share of a scale without an end.

        Without an effect, it is the margin that the config names for the metric.
        """
        if self.effect is None:
            return scale.margin
        if not self.is_share:
            return self.effect
        span = scale.high - scale.low
        return None if math.isinf(span) else self.effect * span


@attrs.frozen
class MetricPower:
    """What the planned run can see by one metric. What is unknown is `None`, and `reason` says why.

    `sd` is the standard deviation of a question's difference at the planned repetitions, between the two arms for
    which it is largest: `agent` and `condition` name the one of the pilot, and `assumed` the assumption instead.
    `scored` is the share of questions that the metric has something to say about. `questions` are needed to see
    `effect`, and `trials` to ask them. `detectable` is what the planned number of questions shows. Both are at the
    level of the `family`, in which `family_size` comparisons are judged together; `questions_primary` would be needed
    if this were the only primary metric. `repetition_share` is the share of the variance that comes from repetitions,
    which more of them reduce.
    """

    metric: str
    judge: str | None
    scale: Scale
    effect: float | None = None
    assumed: str | None = None
    agent: str | None = None
    condition: str | None = None
    pilot_n: int | None = None
    sd: float | None = None
    scored: float | None = None
    family: Family = "all"
    family_size: int = 1
    questions: int | None = None
    trials: int | None = None
    questions_primary: int | None = None
    detectable: float | None = None
    repetition_share: float | None = None
    reason: str = ""


@attrs.frozen
class PowerPlan:
    """A planned run, what it can see, and what it would take: as it is planned, and with the questions `needed`.

    Without a pilot, there is an `estimate` of what it would take as it is planned.
    """

    evaluation: str
    power: float
    questions: int
    repetitions: int
    agents: tuple[str, ...]
    conditions: tuple[str, ...]
    pilot: str | None
    simulated: tuple[str, ...]
    metrics: tuple[MetricPower, ...]
    expense: Forecast
    needed: Forecast | None
    estimate: Estimate | None


def plan_power(plan: Plan, wanted: PowerTarget, pilot: Pilot | None = None) -> PowerPlan:
    """Plan what a run must have to see an effect, and what it can see as it is, by the rule that gives the verdicts.

    Raises ConfigError: the plan compares nothing, or the pilot has none of its metrics.
    """
    if len(plan.arms) * len(plan.agents) < 2:
        raise ConfigError("the config has one agent under one condition, so there is nothing to compare; add another")
    scales = scales_of(plan.evaluation, plan.scorers)
    if pilot is not None and not (found := {entry.scorer for entry in pilot.summary.scorers}) & scales.keys():
        first = next(iter(scales))[0]
        hint = suggestion(first, [metric for metric, _ in found])
        raise ConfigError(f"the pilot {pilot.summary.run} has none of the config's metrics, such as {first!r}{hint}")
    families = _Families.of(plan)
    metrics: list[MetricPower] = []
    alike: dict[tuple[float, float, Family, int], list[MetricPower]] = {}
    for scorer, scale in scales.items():
        family, size = families.told(scorer[0])
        about = MetricPower(*scorer, scale, family=family, family_size=size)
        if pilot is not None:
            metrics.append(_piloted(plan, wanted, families, about, pilot))
            continue
        # What is assumed is the same for all metrics of one scale.
        key = (scale.low, scale.high, family, families.alone(scorer[0]))
        if key not in alike:
            alike[key] = [*_assumed(plan, wanted, families, about)]
        metrics += [attrs.evolve(each, metric=scorer[0], judge=scorer[1], scale=scale) for each in alike[key]]
    primary = [power for power in metrics if power.family == "primary"] or metrics
    most = max((power.questions or 0 for power in primary if power.assumed in (None, "usual")), default=0)
    return PowerPlan(
        evaluation=plan.evaluation.name,
        power=wanted.power,
        questions=len(plan.samples),
        repetitions=plan.evaluation.execution.num_repetitions,
        agents=tuple(agent.label for agent in plan.agents),
        conditions=tuple(arm.label for arm in plan.arms),
        pilot=pilot.summary.run if pilot else None,
        simulated=pilot.summary.simulated if pilot else (),
        metrics=tuple(metrics),
        expense=forecast(plan, len(plan.samples), pilot),
        needed=forecast(plan, most, pilot) if most else None,
        estimate=None if pilot else estimate(plan),
    )


@attrs.frozen
class _Families:
    """How many comparisons are judged together: of each metric there are `comparisons`, by as many `scorers` each."""

    comparisons: int
    scorers: Mapping[str, int]
    primary: frozenset[str]
    seed: int

    @classmethod
    def of(cls, plan: Plan) -> _Families:
        ablated = plan.evaluation.source.data.get("ablated") or {}
        made = {label for parts in ablated.values() for label in parts.values()}
        conditions = sum(arm.label not in made for arm in plan.arms)
        agents = [agent.label for agent in plan.agents]
        # Conditions are what a run is about; agents are compared where there is one condition.
        comparisons = (conditions - 1) * len(agents) or len(agent_pairs(agents)) * conditions or 1
        fixed = {item.label for item in plan.scorers.metrics if isinstance(item.plugin, AgentChecker)}
        scorers = Counter(metric for metric, _ in plan.scorers.scales() if metric not in fixed)
        primary = frozenset(plan.evaluation.section(Wanted).primary) & scorers.keys()
        return cls(comparisons, scorers, primary, plan.evaluation.execution.seed)

    def told(self, metric: str) -> tuple[Family, int]:
        """Return the family of a metric, and how many comparisons it has."""
        families = Families(self.primary)
        family = families.of(metric)
        together = sum(count for name, count in self.scorers.items() if families.of(name) == family)
        return family, self.comparisons * max(1, together)

    def alone(self, metric: str) -> int:
        """Return how many comparisons a metric has by itself."""
        return self.comparisons * max(1, self.scorers.get(metric, 1))


def _assumed(plan: Plan, wanted: PowerTarget, families: _Families, about: MetricPower) -> Iterator[MetricPower]:
    """Yield what a metric can see under each assumption."""
    span = about.scale.high - about.scale.low
    if math.isinf(span):
        yield attrs.evolve(about, reason="its scale is unbounded, so its scatter is unknown without a pilot")
        return
    for assumption in ASSUMPTIONS:
        told = attrs.evolve(about, assumed=assumption.name, sd=assumption.share * span, scored=1.0)
        changes = [(change * span, likely) for change, likely in assumption.changes.items()]
        yield _needed(plan, wanted, families, told, changes)


def _piloted(plan: Plan, wanted: PowerTarget, families: _Families, about: MetricPower, pilot: Pilot) -> MetricPower:
    """Return what a metric can see if it scatters as in the pilot."""
    scorer = (about.metric, about.judge)
    known = [effect for effect in pilot.summary.effects if effect.scorer == scorer and effect.stderr is not None]
    planned = {(agent.label, arm.label) for agent in plan.agents for arm in plan.arms}
    # If the pilot compared none of the arms that are planned, others are the best there is.
    known = [effect for effect in known if {*_ends(effect)} <= planned] or known
    # Conditions are what a run is about; agents are compared where there is one condition.
    effects = [effect for effect in known if effect.kind == "condition"] or known
    if not effects:
        why = "the pilot has fewer than two questions that it scored in both arms"
        told = any(each.scorer == scorer for each in pilot.summary.properties)
        return attrs.evolve(about, reason="it is a property of each agent, which no answer changes" if told else why)
    repetitions = plan.evaluation.execution.num_repetitions
    widest = max(effects, key=lambda effect: _scatter(pilot, effect, repetitions)[0])
    sd, share = _scatter(pilot, widest, repetitions)
    samples = pilot.manifest.dataset.samples or 0
    about = attrs.evolve(
        about,
        agent=widest.agent,
        condition=widest.condition,
        pilot_n=widest.n,
        sd=sd,
        scored=min(1.0, widest.n / samples) if samples else 1.0,
        repetition_share=share,
    )
    if not sd:
        return attrs.evolve(about, reason="every question differed by the same in the pilot, which tells no scatter")
    return _needed(plan, wanted, families, about, _scaled(pilot.differences_of(widest), sd))


_Changes: TypeAlias = Sequence[tuple[float, float]]
"""By how much questions differ, and how likely each is."""


def _scaled(values: FloatArray, sd: float) -> _Changes:
    """Return differences that scatter by `sd`; those that are 0 stay 0."""
    import numpy as np  # takes a tenth of a second to import

    now = float(np.std(values, ddof=1))
    return [(float(value), 1.0) for value in values * (sd / now if now else 1.0)]


def _scatter(pilot: Pilot, effect: Effect, times: int) -> tuple[float, float | None]:
    """Return the standard deviation of a question's difference at so many repetitions, and the share due to these.

    The variance of a difference of means is that between questions and, for each arm, that of a repetition over their
    number; the pilot tells the sum and the latter. The share is `None` if it repeated nothing. Source: Miller, arXiv
    2411.00640, section 3.1 (the law of total variance).
    """
    arms = {(arm.agent, arm.condition): arm for arm in pilot.summary.arms if arm.scorer == effect.scorer}
    graded = next((e.repetitions for e in pilot.manifest.scorers if e.scorer == effect.scorer), 1)
    total = between = (effect.stderr or 0.0) ** 2 * effect.n
    within = 0.0
    for arm in (arms[end] for end in _ends(effect)):
        if arm.repetitions is None or arm.repetitions.sd is None:
            return math.sqrt(total), None
        # Failures may have left one arm fewer repetitions than the other.
        had = (arm.scored + arm.neutral * (pilot.summary.neutral == "count")) / (arm.n * graded)
        within += arm.repetitions.sd**2
        between -= arm.repetitions.sd**2 / had
    between = max(0.0, between)
    variance = between + within / times
    return math.sqrt(variance), within / times / variance if variance else None


def _ends(effect: Effect) -> tuple[tuple[str, str], tuple[str, str]]:
    return (effect.agent, effect.condition), (effect.against.agent, effect.against.condition)


def _runs(about: MetricPower, changes: _Changes, size: int, seed: int) -> SimulatedRuns:
    """Return runs of questions that differ so, in which so many comparisons are judged together.

    The p of the only effect among so many is held against 5 % over their number, which is Holm's first step.
    """
    import numpy as np  # takes a tenth of a second to import

    from keval_analysis.stats.simulated_power import Differences, SimulatedRuns

    values, weights = np.array(changes).T
    seen = Differences(values, weights / weights.sum())
    return SimulatedRuns(seen, about.scale.high - about.scale.low, SURE / size, seed)


def _needed(plan: Plan, wanted: PowerTarget, families: _Families, about: MetricPower, changes: _Changes) -> MetricPower:
    """Add to what is known of a metric how many questions it needs, and what it sees as planned."""
    scored = about.scored or 1.0
    runs = _runs(about, changes, about.family_size, families.seed)
    # A share of the questions may come out a hair below a whole number, or above it further down.
    counting = math.floor(len(plan.samples) * scored + 1e-9)
    about = attrs.evolve(about, detectable=runs.detectable(counting, wanted.power))
    effect = wanted.on(about.scale)
    if effect is None:
        told = "an effect in percent needs a scale with two ends" if wanted.effect is not None else ""
        return attrs.evolve(about, reason=told)
    if effect > about.scale.high - about.scale.low:
        return attrs.evolve(about, effect=effect, reason="beyond the scale")

    def questions(of: SimulatedRuns) -> int | None:
        found = of.questions(effect, wanted.power)
        return None if found is None else math.ceil(found / scored - 1e-9)

    needed = questions(runs)
    alone = families.alone(about.metric)
    primary = None
    if about.family == "all" and alone < about.family_size:
        primary = questions(attrs.evolve(runs, alpha=SURE / alone))
    return attrs.evolve(
        about,
        effect=effect,
        questions=needed,
        trials=None if needed is None else trials_for(plan, needed),
        questions_primary=primary,
        reason="more than ten million questions" if needed is None else "",
    )
