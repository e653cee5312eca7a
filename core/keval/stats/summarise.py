"""Summarising a run's trials and scores: means per arm, effects and counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from keval.effects import Arm, Effect
from keval.manifest import Manifest, ScorerEntry
from keval.records import Trial
from keval.scores import Judgement, ScoreLine, Scorer, named_band
from keval.stats.agreement import JudgeAgreement
from keval.stats.estimates import Means, NestedMeans, estimate, paired_effect
from keval.stats.failures import FailureTally
from keval.stats.tally import JudgingTally, Tally
from keval.summary import ArmScore, ScorerScale, Summary

__all__ = ["Summariser", "is_current", "summarise"]

_ArmKey: TypeAlias = tuple[str, str]


def is_current(line: ScoreLine, scorer: ScorerEntry | None) -> bool:
    """Return whether a score is by the version of its scorer in the manifest; an interrupted pass may leave others."""
    if scorer is None or line.digest != scorer.digest:
        return False
    return line.judgement is None or line.judgement.repetition <= scorer.repetitions


@attrs.define
class _Cell:
    """The scores of one scorer in one arm. `means` are nested if a judge grades more than once."""

    means: Means | NestedMeans
    scored: int = 0
    neutral: int = 0
    unscored: int = 0
    failed: int = 0
    failures: FailureTally = attrs.field(factory=FailureTally)

    @classmethod
    def of(cls, repetitions: int) -> _Cell:
        return cls(Means() if repetitions == 1 else NestedMeans())

    def add(self, line: ScoreLine, sample: int, *, count_neutral: bool) -> None:
        value, neutral = line.score.value, line.score.neutral
        if value is None:
            self.unscored += 1
            if line.failure is not None:
                self.failed += 1
                self.failures.add(line.failure.kind, line.failure.message)
            return
        self.neutral += neutral
        self.scored += not neutral
        if neutral and not count_neutral:
            return
        if isinstance(self.means, Means):
            self.means.add(sample, value)
        else:
            self.means.add(sample, line.trial, value)


def summarise(manifest: Manifest, trials: Iterable[Trial], scores: Iterable[ScoreLine]) -> Summary:
    """Summarise a run; its trials and scores are read once."""
    summariser = Summariser(manifest)
    for trial in trials:
        summariser.add_trial(trial)
    for line in scores:
        summariser.add_scores([line])
    return summariser.summary()


class Summariser:
    """Takes a run's trials and scores one by one, in any order, and keeps only sums and counts."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._tallies: dict[_ArmKey, Tally] = {
            (agent, condition): Tally() for agent in manifest.agents for condition in manifest.conditions
        }
        self._scorers = {entry.scorer: entry for entry in manifest.scorers}
        self._cells: dict[_ArmKey, dict[Scorer, _Cell]] = {
            arm: {scorer: _Cell.of(entry.repetitions) for scorer, entry in self._scorers.items()}
            for arm in self._tallies
        }
        self._count_neutral = manifest.neutral == "count"
        self._samples: dict[str, int] = {}
        self._judging: dict[_ArmKey, dict[str, JudgingTally]] = {
            arm: defaultdict(JudgingTally) for arm in self._tallies
        }
        self._agreement = JudgeAgreement(manifest.scorers)
        self._last: tuple[str, str, Judgement] | None = None

    def add_trial(self, trial: Trial) -> None:
        """Add a trial."""
        self._tallies[trial.agent, trial.condition].add(trial, self._number(trial.sample.id))

    def add_scores(self, lines: Sequence[ScoreLine]) -> None:
        """Add scores of one trial; those that do not count are left out."""
        if not lines:
            return
        cells = self._cells[lines[0].agent, lines[0].condition]
        sample = self._number(lines[0].sample)
        for line in lines:
            if not is_current(line, self._scorers.get(line.scorer)):
                continue
            cells[line.scorer].add(line, sample, count_neutral=self._count_neutral)
            if line.judge is not None and line.judgement is not None:
                self._agreement.add(line)
                # A judgement is repeated by each of its scores, which follow each other; it is counted once.
                judged = (line.trial, line.judge, line.judgement)
                if judged != self._last:
                    self._judging[line.agent, line.condition][line.judge].add(line.judgement)
                self._last = judged

    def summary(self) -> Summary:
        """Return the summary of everything that was added."""
        manifest = self._manifest
        return Summary(
            run=manifest.run,
            evaluation=manifest.evaluation,
            baseline=manifest.baseline,
            neutral=manifest.neutral,
            planned=manifest.trials,
            simulated=manifest.simulated,
            scorers=tuple(ScorerScale(entry.metric, entry.judge, entry.scale) for entry in manifest.scorers),
            judges=manifest.judges,
            trials=tuple(tally.total(*arm, manifest.conditions[arm[1]]) for arm, tally in self._tallies.items()),
            arms=tuple(
                _arm(arm, entry, self._cells[arm][scorer], tally.answered)
                for arm, tally in self._tallies.items()
                for scorer, entry in self._scorers.items()
            ),
            effects=tuple(
                _effect((agent, condition), scorer, self._cells, manifest)
                for agent, condition in self._tallies
                if condition != manifest.baseline
                for scorer in self._scorers
            ),
            judging=tuple(
                tally.total(*arm, judge) for arm, judges in self._judging.items() for judge, tally in judges.items()
            ),
            agreement=self._agreement.summary(),
            elapsed=manifest.elapsed,
            stopped=manifest.stopped,
        )

    def _number(self, sample: str) -> int:
        return self._samples.setdefault(sample, len(self._samples))


def _arm(arm: _ArmKey, scorer: ScorerEntry, cell: _Cell, answered: int) -> ArmScore:
    found = estimate(cell.means.by_sample().values())
    expected = answered * scorer.repetitions
    return ArmScore(
        agent=arm[0],
        condition=arm[1],
        metric=scorer.metric,
        judge=scorer.judge,
        n=found.n,
        mean=found.mean,
        stderr=found.stderr,
        band=None if found.mean is None else named_band(scorer.scale.bands, found.mean),
        scored=cell.scored,
        neutral=cell.neutral,
        unscored=cell.unscored,
        failed=cell.failed,
        failures=dict(cell.failures.counts),
        failure_messages=dict(cell.failures.messages),
        missing=max(0, expected - cell.scored - cell.neutral - cell.unscored),
    )


def _effect(
    arm: _ArmKey, scorer: Scorer, cells: Mapping[_ArmKey, Mapping[Scorer, _Cell]], manifest: Manifest
) -> Effect:
    agent, condition = arm
    baseline = manifest.baseline
    against = cells[agent, baseline][scorer].means.by_sample()
    found = paired_effect(cells[arm][scorer].means.by_sample(), against)
    return Effect(
        metric=scorer[0],
        judge=scorer[1],
        agent=agent,
        condition=condition,
        against=Arm(agent, baseline, manifest.run),
        run=manifest.run,
        n=found.n,
        difference=found.mean,
        stderr=found.stderr,
    )
