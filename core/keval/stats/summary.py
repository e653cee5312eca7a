"""The summary of a run: arms, effects and counts. A pure function of what a run has on disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from keval.records import ScoreLine, Trial, Usage, named_band
from keval.stats.effects import paired_effect
from keval.stats.estimate import Means, estimate

__all__ = ["Summariser", "summarise"]

ArmKey: TypeAlias = tuple[str, str]
ScorerKey: TypeAlias = tuple[str, str | None]

_SCALE = ("low", "high", "better", "unit", "bands")


@attrs.define
class _Cell:
    """One metric in one arm."""

    means: Means = attrs.field(factory=Means)
    scored: int = 0
    neutral: int = 0
    unscored: int = 0
    failed: int = 0


@attrs.define
class _Tally:
    """What happened to one arm's trials."""

    trials: int = 0
    failed: int = 0
    retried: int = 0
    tool_calls: int | None = None
    model_calls: int | None = None
    usage: Usage = attrs.field(factory=Usage)
    durations: Means = attrs.field(factory=Means)
    failures: Counter[str] = attrs.field(factory=Counter)

    def add(self, trial: Trial, sample: int) -> None:
        self.trials += 1
        self.retried += bool(trial.attempts)
        if trial.failure:
            self.failed += 1
            self.failures[f"{trial.failure.stage}: {trial.failure.kind}"] += 1
        if trial.transcript:
            listed, unlisted = len(trial.transcript.tool_calls), trial.transcript.unlisted_calls
            if listed or unlisted is not None:
                self.tool_calls = (self.tool_calls or 0) + listed + (unlisted or 0)
            if trial.transcript.model_calls is not None:
                self.model_calls = (self.model_calls or 0) + trial.transcript.model_calls
            self.usage = self.usage + trial.transcript.usage
            if trial.transcript.duration is not None and not trial.failure:
                self.durations.add(sample, trial.transcript.duration)


def summarise(manifest: Mapping[str, Any], trials: Iterable[Trial], scores: Iterable[ScoreLine]) -> dict[str, Any]:
    """Summarise a run; its trials and scores are read once. For what is in it, see `Summariser.summary`."""
    summariser = Summariser(manifest)
    for trial in trials:
        summariser.add_trial(trial)
    for line in scores:
        summariser.add_scores([line])
    return summariser.summary()


class Summariser:
    """Takes a run's trials and scores one by one, in any order, and keeps no more of them than it needs."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._manifest = manifest
        self._tallies: dict[ArmKey, _Tally] = {
            (agent, condition): _Tally() for agent in manifest["agents"] for condition in manifest["conditions"]
        }
        self._cells: dict[ArmKey, dict[ScorerKey, _Cell]] = {arm: defaultdict(_Cell) for arm in self._tallies}
        self._count_neutral = manifest["neutral"] == "count"
        self._samples: dict[str, int] = {}

    def add_trial(self, trial: Trial) -> None:
        self._tallies[trial.agent, trial.condition].add(trial, self._number(trial.sample.id))

    def add_scores(self, lines: Sequence[ScoreLine]) -> None:
        """Add scores of one trial."""
        if not lines:
            return
        cells = self._cells[lines[0].agent, lines[0].condition]
        sample = self._number(lines[0].sample)
        for line in lines:
            cell, value = cells[line.metric, line.judge], line.score.value
            if value is None:
                cell.unscored += 1
                cell.failed += line.failure is not None
            elif line.score.neutral:
                cell.neutral += 1
                if self._count_neutral:
                    cell.means.add(sample, value)
            else:
                cell.scored += 1
                cell.means.add(sample, value)

    def summary(self) -> dict[str, Any]:
        """Return the summary as plain data.

        `arms` has an entry per agent, condition and metric: `n` samples with a mean, its standard error and its band,
        and counts of scores that were scored, neutral, unscored (failed ones among them), or are missing since scoring
        was interrupted. `effects` has the paired difference to the baseline per agent and metric. `trials` counts what
        happened per arm.
        """
        manifest = self._manifest
        scales = {entry["metric"]: {key: entry[key] for key in _SCALE} for entry in manifest["scorers"]}
        scorers = [(entry["metric"], entry["judge"]) for entry in manifest["scorers"]]
        baseline = manifest["baseline"]
        return {
            "run": manifest["run"],
            "evaluation": manifest["evaluation"],
            "simulated": manifest["simulated"],
            "baseline": baseline,
            "neutral": manifest["neutral"],
            "scales": scales,
            "planned": manifest["trials"],
            "trials": [_trials(arm, tally) for arm, tally in self._tallies.items()],
            "arms": [
                _arm(arm, scorer, self._cells[arm][scorer], tally, scales[scorer[0]]["bands"])
                for arm, tally in self._tallies.items()
                for scorer in scorers
            ],
            "effects": [
                _effect((agent, condition), scorer, self._cells, baseline)
                for agent, condition in self._tallies
                if condition != baseline
                for scorer in scorers
            ],
        }

    def _number(self, sample: str) -> int:
        return self._samples.setdefault(sample, len(self._samples))


def _trials(arm: ArmKey, tally: _Tally) -> dict[str, Any]:
    duration = estimate(tally.durations.by_sample().values())
    return {
        "agent": arm[0],
        "condition": arm[1],
        "trials": tally.trials,
        "failed": tally.failed,
        "retried": tally.retried,
        "failures": dict(tally.failures),
        "tool_calls": tally.tool_calls,
        "model_calls": tally.model_calls,
        "usage": attrs.asdict(tally.usage),
        "duration": duration.mean,
    }


def _arm(arm: ArmKey, scorer: ScorerKey, cell: _Cell, tally: _Tally, bands: Mapping[str, float]) -> dict[str, Any]:
    found = estimate(cell.means.by_sample().values())
    answered = tally.trials - tally.failed
    return {
        "agent": arm[0],
        "condition": arm[1],
        "metric": scorer[0],
        "judge": scorer[1],
        "n": found.n,
        "mean": found.mean,
        "stderr": found.stderr,
        "band": None if found.mean is None else named_band(bands, found.mean),
        "scored": cell.scored,
        "neutral": cell.neutral,
        "unscored": cell.unscored,
        "failed": cell.failed,
        "missing": max(0, answered - cell.scored - cell.neutral - cell.unscored),
    }


def _effect(
    arm: ArmKey, scorer: ScorerKey, cells: Mapping[ArmKey, Mapping[ScorerKey, _Cell]], baseline: str
) -> dict[str, Any]:
    agent, condition = arm
    against = cells[agent, baseline][scorer].means.by_sample()
    found = paired_effect(cells[arm][scorer].means.by_sample(), against)
    return {
        "metric": scorer[0],
        "judge": scorer[1],
        "agent": agent,
        "condition": condition,
        "against": {"agent": agent, "condition": baseline},
        "n": found.n,
        "difference": found.mean,
        "stderr": found.stderr,
    }
