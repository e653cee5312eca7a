"""Planning a run: how many questions show a difference, and what the run would cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from keval.errors import ConfigError, suggestion
from keval.plan.plan import Plan
from keval.records.effects import Effect
from keval.records.manifest import Manifest
from keval.records.scores import Scale, Scorer
from keval.records.summary import ArmScore, ArmTrials, JudgingTotal, Summary, UsageTotal


@attrs.frozen
class Forecast:
    """What a number of trials would take at the pilot's rates, agents and judges together; `None` is unknown."""

    questions: int
    trials: int
    tokens: float | None
    usd: float | None
    seconds: float | None


def trials_for(plan: Plan, questions: int) -> int:
    """Return how many trials so many questions take."""
    return math.ceil(plan.trial_count * questions / len(plan.samples))


def forecast(plan: Plan, questions: int, pilot: tuple[Manifest, Summary] | None) -> Forecast:
    """Return what so many questions would take at the pilot's rates."""
    trials = trials_for(plan, questions)
    if pilot is None:
        return Forecast(questions, trials, None, None, None)
    arms = {(arm.agent, arm.condition): arm for arm in pilot[1].trials if arm.trials}
    planned = [(agent.label, arm.label) for agent in plan.agents for arm in plan.arms]
    if not all(arm in arms for arm in planned):
        return Forecast(questions, trials, None, None, None)
    each = trials / len(planned)
    judging = [judged for judged in pilot[1].judging if (judged.agent, judged.condition) in planned]

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
        seconds=_seconds(plan, trials, *pilot),
    )


def _tokens(usage: UsageTotal) -> int | None:
    """Return input and output tokens; `None` if some are unknown, as a sum of the others would look like all."""
    if usage.input_tokens is None or usage.output_tokens is None or usage.unknown:
        return None
    return usage.input_tokens + usage.output_tokens


def _seconds(plan: Plan, trials: int, manifest: Manifest, pilot: Summary) -> float | None:
    """Return how long so many trials take at the pilot's pace, with as many at once as are planned."""
    done = sum(arm.trials for arm in pilot.trials)
    if pilot.elapsed is None or not done:
        return None
    before = manifest.config.get("execution", {}).get("max_concurrent")
    now = plan.evaluation.execution.max_concurrent
    faster = now / before if isinstance(before, int) and before > 0 else 1.0
    return pilot.elapsed / done * trials / faster


@attrs.frozen
class Assumption:
    """A standard deviation of paired differences, as a share of the scale, and when that is so."""

    name: str
    share: float
    meaning: str


ASSUMPTIONS = (
    Assumption("worst", 1.0, "every question goes from one end of the scale to the other, half of them each way"),
    # Differences of 0/1 scores are -1, 0 or 1, so their standard deviation is the root of the share that changes.
    Assumption("usual", math.sqrt(0.2), "one question in five goes from failed to passed, or back"),
)


@attrs.frozen
class PowerTarget:
    """What a run is to show: an effect in the units of the scale, or as a share of it, and with which power."""

    effect: float | None = None
    is_share: bool = False
    power: float = 0.8

    def on(self, scale: Scale) -> float | None:
        """Return the effect in the units of a scale; `None` without one, or for a share of a scale without an end."""
        if self.effect is None or not self.is_share:
            return self.effect
        span = scale.high - scale.low
        return None if math.isinf(span) else self.effect * span


@attrs.frozen
class MetricPower:
    """What the planned run can see by one metric. What is unknown is `None`, and `reason` says why.

    `sd` is the standard deviation of a question's difference at the planned repetitions, between the two arms for
    which it is largest: `agent` and `condition` name the one of the pilot, and `assumed` the assumption instead.
    `scored` is the share of questions that the metric has something to say about. `questions` are needed to see
    `effect`, `trials` to ask them, and `questions_doubled` would be needed with twice the repetitions. `detectable` is
    what the planned number of questions shows. `repetition_share` is the share of the variance that comes from
    repetitions, which more of them reduce.
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
    questions: int | None = None
    trials: int | None = None
    detectable: float | None = None
    repetition_share: float | None = None
    questions_doubled: int | None = None
    reason: str = ""


@attrs.frozen
class PowerPlan:
    """A planned run, what it can see, and what it would take: as it is planned, and with the questions `needed`."""

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


def plan_power(plan: Plan, wanted: PowerTarget, pilot: tuple[Manifest, Summary] | None = None) -> PowerPlan:
    """Plan what a run must have to see an effect, and what it can see as it is. Each comparison is held to 5 % alone.

    Raises ConfigError: the plan compares nothing, or the pilot has none of its metrics.
    """
    if len(plan.arms) * len(plan.agents) < 2:
        raise ConfigError("the config has one agent under one condition, so there is nothing to compare; add another")
    scales = plan.scorers.scales()
    if pilot is None:
        metrics = [power for scorer, scale in scales.items() for power in _assumed(plan, wanted, scorer, scale)]
    else:
        found = {entry.scorer for entry in pilot[1].scorers}
        if not found & scales.keys():
            first = next(iter(scales))[0]
            hint = suggestion(first, [metric for metric, _ in found])
            raise ConfigError(f"the pilot {pilot[1].run} has none of the config's metrics, such as {first!r}{hint}")
        metrics = [_piloted(plan, wanted, scorer, scale, pilot) for scorer, scale in scales.items()]
    most = max((power.questions or 0 for power in metrics if power.assumed in (None, "usual")), default=0)
    return PowerPlan(
        evaluation=plan.evaluation.name,
        power=wanted.power,
        questions=len(plan.samples),
        repetitions=plan.evaluation.execution.num_repetitions,
        agents=tuple(agent.label for agent in plan.agents),
        conditions=tuple(arm.label for arm in plan.arms),
        pilot=pilot[1].run if pilot else None,
        simulated=pilot[1].simulated if pilot else (),
        metrics=tuple(metrics),
        expense=forecast(plan, len(plan.samples), pilot),
        needed=forecast(plan, most, pilot) if most else None,
    )


def _assumed(plan: Plan, wanted: PowerTarget, scorer: Scorer, scale: Scale) -> Iterator[MetricPower]:
    """Yield what a metric can see under each assumption."""
    span = scale.high - scale.low
    if math.isinf(span):
        yield MetricPower(*scorer, scale, reason="its scale is unbounded, so its scatter is unknown without a pilot")
        return
    for assumption in ASSUMPTIONS:
        about = MetricPower(*scorer, scale, assumed=assumption.name, sd=assumption.share * span, scored=1.0)
        yield _needed(plan, wanted, about, about.sd)


def _piloted(
    plan: Plan, wanted: PowerTarget, scorer: Scorer, scale: Scale, run: tuple[Manifest, Summary]
) -> MetricPower:
    """Return what a metric can see if it scatters as in the pilot."""
    manifest, pilot = run
    known = [effect for effect in pilot.effects if effect.scorer == scorer and effect.stderr is not None]
    planned = {(agent.label, arm.label) for agent in plan.agents for arm in plan.arms}
    # If the pilot compared none of the arms that are planned, others are the best there is.
    known = [effect for effect in known if {*_ends(effect)} <= planned] or known
    # Conditions are what a run is about; agents are compared where there is one condition.
    effects = [effect for effect in known if effect.kind == "condition"] or known
    if not effects:
        return MetricPower(*scorer, scale, reason="the pilot has fewer than two questions that it scored in both arms")
    arms = {(arm.agent, arm.condition): arm for arm in pilot.arms if arm.scorer == scorer}
    graded = next((entry.repetitions for entry in manifest.scorers if entry.scorer == scorer), 1)
    count_neutral = pilot.neutral == "count"
    repetitions = plan.evaluation.execution.num_repetitions

    def scatter(effect: Effect, times: int) -> tuple[float, float | None]:
        ours, theirs = (arms[end] for end in _ends(effect))
        had = (ours.scored + ours.neutral * count_neutral) / (ours.n * graded)
        return _sd(effect, [ours, theirs], had, times)

    widest = max(effects, key=lambda effect: scatter(effect, repetitions)[0])
    sd, share = scatter(widest, repetitions)
    samples = manifest.dataset.samples or 0
    about = MetricPower(
        *scorer,
        scale,
        agent=widest.agent,
        condition=widest.condition,
        pilot_n=widest.n,
        sd=sd,
        scored=min(1.0, widest.n / samples) if samples else 1.0,
        repetition_share=share,
    )
    if not sd:
        return attrs.evolve(about, reason="every question differed by the same in the pilot, which tells no scatter")
    return _needed(plan, wanted, about, None if share is None else scatter(widest, 2 * repetitions)[0])


def _ends(effect: Effect) -> tuple[tuple[str, str], tuple[str, str]]:
    return (effect.agent, effect.condition), (effect.against.agent, effect.against.condition)


def _sd(effect: Effect, arms: Iterable[ArmScore], had: float, repetitions: int) -> tuple[float, float | None]:
    """Return the standard deviation of a question's difference at so many repetitions, and the share due to these.

    The variance of a difference of means is that between questions and, for each arm, that of a repetition over their
    number; the pilot, which `had` so many, tells the sum and the latter. The share is `None` if it repeated nothing.
    Source: Miller, arXiv 2411.00640, section 3.1 (the law of total variance).
    """
    total = (effect.stderr or 0.0) ** 2 * effect.n
    within = 0.0
    for arm in arms:
        if arm.repetitions is None or arm.repetitions.sd is None:
            return math.sqrt(total), None
        within += arm.repetitions.sd**2
    between = max(0.0, total - within / had)
    variance = between + within / repetitions
    return math.sqrt(variance), within / repetitions / variance if variance else None


def _needed(plan: Plan, wanted: PowerTarget, about: MetricPower, doubled: float | None) -> MetricPower:
    """Add to what is known of a metric how many questions it needs, and what it sees as planned.

    `doubled` is the standard deviation with twice the repetitions, if that is known.
    """
    from keval.analysis.stats.power import (  # SciPy takes a tenth of a second to import
        minimal_detectable,
        samples_needed,
    )

    sd, scored = about.sd or 0.0, about.scored or 1.0
    counting = math.floor(len(plan.samples) * scored + 1e-9)
    detectable = minimal_detectable(sd / math.sqrt(counting), counting, power=wanted.power) if counting else None
    about = attrs.evolve(about, detectable=detectable)
    effect = wanted.on(about.scale)
    if effect is None:
        told = "an effect in percent needs a scale with two ends" if wanted.effect is not None else ""
        return attrs.evolve(about, reason=told)
    if effect > about.scale.high - about.scale.low:
        return attrs.evolve(about, effect=effect, reason="beyond the scale")

    def questions(scatter: float) -> int | None:
        found = samples_needed(scatter, effect, power=wanted.power)
        return None if found is None else math.ceil(found / scored - 1e-9)

    needed = questions(sd)
    return attrs.evolve(
        about,
        effect=effect,
        questions=needed,
        trials=None if needed is None else trials_for(plan, needed),
        questions_doubled=None if doubled is None or about.assumed else questions(doubled),
        reason="more than ten million questions" if needed is None else "",
    )
