"""The summary of a run: arms, effects and counts. A pure function of what a run has on disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import attrs

from keval.records import ScoreLine, Trial, Usage
from keval.stats.effects import paired_effect
from keval.stats.estimate import Means, estimate

__all__ = ["summarise"]

ArmKey: TypeAlias = tuple[str, str]


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
    tool_calls: int = 0
    model_calls: int | None = None
    usage: Usage = attrs.field(factory=Usage)
    durations: Means = attrs.field(factory=Means)
    failures: Counter[str] = attrs.field(factory=Counter)

    def add(self, trial: Trial) -> None:
        self.trials += 1
        self.retried += bool(trial.attempts)
        if trial.failure:
            self.failed += 1
            self.failures[f"{trial.failure.stage}: {trial.failure.kind}"] += 1
        if trial.transcript:
            self.tool_calls += len(trial.transcript.tool_calls)
            if trial.transcript.model_calls is not None:
                self.model_calls = (self.model_calls or 0) + trial.transcript.model_calls
            self.usage = self.usage + trial.transcript.usage
            if trial.transcript.duration is not None and not trial.failure:
                self.durations.add(trial.sample.id, trial.transcript.duration)


def summarise(manifest: Mapping[str, Any], trials: Iterable[Trial], scores: Iterable[ScoreLine]) -> dict[str, Any]:
    """Summarise a run, whose trials and scores are read once, as plain data.

    `arms` has an entry per agent, condition and metric: `n` samples with a mean and its standard error, and counts of
    scores that were scored, neutral, unscored (failed ones among them), or are missing since scoring was interrupted.
    `effects` has the paired difference to the baseline per agent and metric. `trials` counts what happened per arm.
    """
    tallies: dict[ArmKey, _Tally] = {
        (agent, condition): _Tally() for agent in manifest["agents"] for condition in manifest["conditions"]
    }
    for trial in trials:
        tallies[trial.agent, trial.condition].add(trial)
    cells: dict[tuple[ArmKey, str, str | None], _Cell] = defaultdict(_Cell)
    count_neutral = manifest["neutral"] == "count"
    for line in scores:
        _count(cells[(line.agent, line.condition), line.metric, line.judge], line, count_neutral)
    baseline = manifest["baseline"]
    keys = [(arm, entry["metric"], entry["judge"]) for arm in tallies for entry in manifest["scorers"]]
    return {
        "run": manifest["run"],
        "evaluation": manifest["evaluation"],
        "simulated": manifest["simulated"],
        "baseline": baseline,
        "neutral": manifest["neutral"],
        "scales": {entry["metric"]: {"low": entry["low"], "high": entry["high"]} for entry in manifest["scorers"]},
        "planned": manifest["dataset"]["samples"] * len(tallies) * manifest["repetitions"],
        "trials": [_trials(arm, tally) for arm, tally in tallies.items()],
        "arms": [_arm(key, cells[key], tallies[key[0]]) for key in keys],
        "effects": [_effect(key, cells, baseline) for key in keys if key[0][1] != baseline],
    }


def _count(cell: _Cell, line: ScoreLine, count_neutral: bool) -> None:
    if line.score.value is None:
        cell.unscored += 1
        cell.failed += line.failure is not None
        return
    cell.neutral += line.score.neutral
    cell.scored += not line.score.neutral
    if count_neutral or not line.score.neutral:
        cell.means.add(line.sample, line.score.value)


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


def _arm(key: tuple[ArmKey, str, str | None], cell: _Cell, tally: _Tally) -> dict[str, Any]:
    (agent, condition), metric, judge = key
    found = estimate(cell.means.by_sample().values())
    answered = tally.trials - tally.failed
    return {
        "agent": agent,
        "condition": condition,
        "metric": metric,
        "judge": judge,
        "n": found.n,
        "mean": found.mean,
        "stderr": found.stderr,
        "scored": cell.scored,
        "neutral": cell.neutral,
        "unscored": cell.unscored,
        "failed": cell.failed,
        "missing": answered - cell.scored - cell.neutral - cell.unscored,
    }


def _effect(
    key: tuple[ArmKey, str, str | None], cells: Mapping[tuple[ArmKey, str, str | None], _Cell], baseline: str
) -> dict[str, Any]:
    (agent, condition), metric, judge = key
    against = cells[(agent, baseline), metric, judge].means.by_sample()
    found = paired_effect(cells[key].means.by_sample(), against)
    return {
        "metric": metric,
        "judge": judge,
        "agent": agent,
        "condition": condition,
        "against": {"agent": agent, "condition": baseline},
        "n": found.n,
        "difference": found.mean,
        "stderr": found.stderr,
    }
