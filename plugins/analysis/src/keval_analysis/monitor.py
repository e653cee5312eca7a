"""The monitor of a run that may end early: looks at one effect as questions are finished, in the order of asking."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import attrs
import numpy as np

from keval.config.evaluation import Evaluation
from keval.errors import RunError
from keval.plan.check import PlanCheck
from keval.plan.plan import Plan, ResolvedPlugin, question_order
from keval.records.manifest import LookingEntry, Manifest, ScorerEntry
from keval.records.scores import ScoreLine, Scorer
from keval.records.trial import Trial
from keval.seams.interfaces import ComparingJudge
from keval.store.run import Run
from keval_analysis.findings.effects import SURE
from keval_analysis.gate_language import Names, names_of, read_effect
from keval_analysis.stats.effects import differences_of
from keval_analysis.stats.looking import FIRST_LOOK, Looking
from keval_analysis.stats.observations import Observations
from keval_analysis.stats.paired import Rule
from keval_analysis.stats.pairs import ArmValues, Families, Measure, Pair
from keval_analysis.until import Until


def check_until(until: Until, check: PlanCheck) -> None:
    """Check `execution.until`, and whether the questions of a plan suffice for it."""
    evaluation, scorers, path = check.evaluation, check.scorers, ("execution", "until", "effect")
    try:
        effect = read_effect(until.effect, names_of(evaluation, scorers, scorers.scales()))
    except ValueError as error:
        check.problem(path, str(error))
        return
    judge = next((each for each in scorers.judges if each.label == effect.scorer[1]), None)
    if judge is not None and (told := _lateness(judge, evaluation, check.agents)):
        check.problem(path, f"{told}, so there is nothing to look at before; {_OTHERWISE}")
    count = len(question_order(evaluation, check.samples)) if check.samples is not None else 0
    if until.looks is not None and 2 * until.looks > count:
        told = f"{until.looks} looks need {2 * until.looks} questions at least, and there are {count}"
        check.problem(("execution", "until", "looks"), f"{told}; declare fewer looks")
    elif until.looks is None and count <= FIRST_LOOK:
        told = f"intervals that hold at every look begin at {FIRST_LOOK} questions, and there are {count}"
        check.notice(("execution", "until"), f"{told}; the run will not end early")


_OTHERWISE = "name a metric, or remove `until`"


def _lateness(judge: ResolvedPlugin, evaluation: Evaluation, agents: Sequence[ResolvedPlugin]) -> str:
    """Return why a judge grades only when all trials are finished; an empty text if it grades as they finish."""
    if isinstance(judge.plugin, ComparingJudge):
        return f"the judge {judge.label!r} compares trials when all are finished"
    if evaluation.budget.tokens is not None or evaluation.budget.usd is not None:
        return f"with a budget of tokens or US dollars, the judge {judge.label!r} grades when all trials are finished"
    asked = {model: agent.label for agent in agents if not agent.prerecorded for model in agent.model_names}
    shared = [asked[model] for model in judge.model_names if model in asked]
    if shared:
        return (
            f"the judge {judge.label!r} asks the agent {shared[0]!r}'s model, and grades when all trials are finished"
        )
    return ""


@attrs.define
class _Scored:
    """A trial without its transcript, and its scores that are looked at, by the judge's repetition."""

    trial: Trial
    lines: dict[int, ScoreLine] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Monitor:
    """Looks at an effect over those questions, first to last in the order of asking, whose trials are all scored.

    A question that takes long is waited for, as answers that come late may be unlike others. The effect is decided
    where its p is small enough for its family whatever the other effects are. `ended` says why the run ends early.
    """

    plan: Plan
    entry: LookingEntry
    ended: str | None = attrs.field(default=None, init=False)
    _until: Until
    _scorer: ScorerEntry
    _arms: tuple[tuple[str, str], tuple[str, str]]
    _alpha: float
    _observed: Observations
    _order: list[list[str]]
    _looks: Mapping[int, int]
    _open: dict[str, dict[str, _Scored]] = attrs.field(factory=dict, init=False)
    _finished: int = attrs.field(default=0, init=False)

    @classmethod
    def of(cls, until: Until, plan: Plan, manifest: Manifest) -> Monitor:
        """Return the monitor of a run, whose `entry` says how that is looked at.

        A run that goes on after it was looked at otherwise is looked at by what holds whatever was done before.
        """
        names = Names.of(manifest)
        effect = read_effect(until.effect, names)
        scorer = manifest.scorer(effect.scorer)
        assert scorer is not None  # noqa: S101 - for mypy: the name is one of the manifest's
        before, order = manifest.looking, question_order(plan.evaluation, plan.samples)
        looks = until.looks if before is None or before.looks == until.looks else None
        entry = LookingEntry(effect.text, looks, sum(map(len, order)))
        return cls(
            plan,
            entry,
            until,
            scorer,
            ((effect.agent, effect.condition), (effect.agent, manifest.baseline)),
            SURE / _family_size(manifest, effect.scorer),
            Observations(attrs.evolve(manifest, looking=entry), spending=False),
            order,
            {math.ceil(len(order) * look / looks): look for look in range(1, looks)} if looks else {},
        )

    def begin(self, run: Run, late: Collection[str]) -> None:
        """Take what a run has already. Raises RunError: the effect's judge is among those that grade `late`."""
        if self._scorer.judge in late:
            told = f"the judge {self._scorer.judge!r} grades when all trials are finished"
            raise RunError(f"execution.until: {told}, so there is nothing to look at before; {_OTHERWISE}")
        for trial in run.trials():
            self._add(trial, ())
        kept = run.known_trials
        for line in run.scores_as_made():
            if line.failure is None and (key := kept.named(line.trial)) is not None:
                self._take(self._open[key.sample][line.trial], line)
        self._advance()

    def add(self, trial: Trial, scores: Sequence[ScoreLine]) -> None:
        """Take a trial that was scored, with its new scores, and look if that completes a question."""
        self._add(trial, scores)
        self._advance()

    def has_ended(self) -> bool:
        """Return whether no further trial is needed."""
        return self.ended is not None

    def conclude(self, manifest: Manifest, trials: int) -> Manifest:
        """Return the manifest of a run that has so many trials; if it ended early, that says so."""
        if self.ended is None or trials >= self.plan.trial_count:
            return manifest
        asked = tuple(name for names in self._order[: self._finished] for name in names)
        told = f"ended after {len(asked):,} of {self.entry.questions:,} questions: {self.ended}"
        entry = attrs.evolve(self.entry, ended=told, look=self._looks.get(self._finished), asked=asked)
        return attrs.evolve(manifest, looking=entry, trials=trials)

    def _add(self, trial: Trial, scores: Sequence[ScoreLine]) -> None:
        if self.ended is not None:
            return
        of_sample = self._open.setdefault(trial.sample.id, {})
        scored = of_sample.setdefault(trial.id, _Scored(attrs.evolve(trial, transcript=None, attempts=())))
        for line in scores:
            self._take(scored, line)

    def _take(self, scored: _Scored, line: ScoreLine) -> None:
        if line.scorer == self._scorer.scorer and (line.agent, line.condition) in self._arms:
            scored.lines[line.judgement.repetition if line.judgement else 1] = line

    def _advance(self) -> None:
        """Look after each question that is complete now, one by one."""
        # When the last question is complete, there is nothing left to save.
        while self.ended is None and self._finished < len(self._order) - 1:
            names = self._order[self._finished]
            if not all(map(self._is_complete, names)):
                return
            # Questions that were looked at are kept as sums alone.
            for scored in (each for name in names for each in self._open.pop(name).values()):
                if (scored.trial.agent, scored.trial.condition) in self._arms:
                    self._observed.add_trial(scored.trial)
                    for line in scored.lines.values():
                        self._observed.add_score(line)
            self._finished += 1
            self._look()

    def _is_complete(self, name: str) -> bool:
        wanted = [self._open.get(name, {}).get(key.id) for key in self.plan.trials_of([name])]
        answered = [each for each in wanted if each is not None and each.trial.failure is None]
        looked_at = [each for each in answered if (each.trial.agent, each.trial.condition) in self._arms]
        return all(wanted) and all(len(each.lines) >= self._scorer.repetitions for each in looked_at)

    def _look(self) -> None:
        """End the run if the effect is decided by now, or its interval narrow enough."""
        if self.entry.looks is None:
            looking = Looking()
        elif self._finished in self._looks:
            looking = Looking(self._looks[self._finished], self.entry.looks)
        else:
            return
        scorer = self._scorer
        arm, against = (
            ArmValues(self._observed.arms[each].arm, self._observed.arms[each].cells[scorer.scorer].values())
            for each in self._arms
        )
        pair = Pair("condition", Measure(scorer.scorer, scorer.scale, self._observed.clusters), arm, against)
        rule = Rule.on([differences_of(pair)], looking)
        if self._until.width is None:
            if rule.p()[0] <= self._alpha:
                self.ended = f"{self.entry.effect} is decided"
            return
        low, high = rule.interval(1 - SURE)
        if np.isfinite(high[0] - low[0]) and high[0] - low[0] <= self._until.width:
            self.ended = f"the interval of {self.entry.effect} is at most {self._until.width:g} wide"


def _family_size(manifest: Manifest, scorer: Scorer) -> int:
    """Return how many effects at most are judged together with one of a scorer."""
    families = Families(frozenset(manifest.primary))
    family = families.of(scorer[0])
    # Which scorers turn out to be properties of agents, and are not judged, shows at the end only.
    together = sum(families.of(entry.metric) == family for entry in manifest.scorers)
    return together * len(manifest.agents) * (len(manifest.conditions) - 1)
