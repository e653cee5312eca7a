"""The summary of a run: arms, effects and counts. A pure function of what a run has on disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from keval.records import Trial
from keval.scores import Judgement, ScoreLine, Scorer, named_band
from keval.stats.effects import paired_effect
from keval.stats.estimate import Means, NestedMeans, estimate
from keval.stats.panel import Panel
from keval.stats.tally import JudgingTally, Tally

__all__ = ["Summariser", "is_current", "summarise"]

ArmKey: TypeAlias = tuple[str, str]

_SCALE = ("low", "high", "better", "unit", "bands")


def is_current(line: ScoreLine, scorer: Mapping[str, Any] | None) -> bool:
    """Whether a score is by its scorer as the manifest has it; a pass that was cut short may have left others."""
    if scorer is None or line.digest != scorer["digest"]:
        return False
    return line.judgement is None or line.judgement.repetition <= int(scorer["repetitions"])


@attrs.define
class _Cell:
    """One metric in one arm; `means` of a judge that was asked more than once are nested."""

    means: Means | NestedMeans
    scored: int = 0
    neutral: int = 0
    unscored: int = 0
    failed: int = 0
    failures: Counter[str] = attrs.field(factory=Counter)

    @classmethod
    def of(cls, repetitions: int) -> _Cell:
        return cls(Means() if repetitions == 1 else NestedMeans())

    def add(self, line: ScoreLine, sample: int, *, count_neutral: bool) -> None:
        value, neutral = line.score.value, line.score.neutral
        if value is None:
            self.unscored += 1
            if line.failure is not None:
                self.failed += 1
                self.failures[line.failure.kind] += 1
            return
        self.neutral += neutral
        self.scored += not neutral
        if neutral and not count_neutral:
            return
        if isinstance(self.means, Means):
            self.means.add(sample, value)
        else:
            self.means.add(sample, line.trial, value)


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
        self._tallies: dict[ArmKey, Tally] = {
            (agent, condition): Tally() for agent in manifest["agents"] for condition in manifest["conditions"]
        }
        self._scorers = {(entry["metric"], entry["judge"]): entry for entry in manifest["scorers"]}
        self._cells: dict[ArmKey, dict[Scorer, _Cell]] = {
            arm: {scorer: _Cell.of(entry["repetitions"]) for scorer, entry in self._scorers.items()}
            for arm in self._tallies
        }
        self._count_neutral = manifest["neutral"] == "count"
        self._samples: dict[str, int] = {}
        self._judging: dict[ArmKey, dict[str, JudgingTally]] = {arm: defaultdict(JudgingTally) for arm in self._tallies}
        self._panel = Panel(manifest["scorers"])
        self._last: tuple[str, str, Judgement] | None = None

    def add_trial(self, trial: Trial) -> None:
        self._tallies[trial.agent, trial.condition].add(trial, self._number(trial.sample.id))

    def add_scores(self, lines: Sequence[ScoreLine]) -> None:
        """Add scores of one trial."""
        if not lines:
            return
        cells = self._cells[lines[0].agent, lines[0].condition]
        sample = self._number(lines[0].sample)
        for line in lines:
            if not is_current(line, self._scorers.get(line.scorer)):
                continue
            cells[line.scorer].add(line, sample, count_neutral=self._count_neutral)
            if line.judge is not None and line.judgement is not None:
                self._panel.add(line)
                # What a judgement took stands on each of its scores, which stand together.
                judged = (line.trial, line.judge, line.judgement)
                if judged != self._last:
                    self._judging[line.agent, line.condition][line.judge].add(line.judgement)
                self._last = judged

    def summary(self) -> dict[str, Any]:
        """Return the summary as plain data.

        `arms` has an entry per agent, condition and metric: `n` samples with a mean, its standard error and its band,
        and counts of scores that were scored, neutral, unscored (failed ones among them), or are missing since scoring
        was interrupted. `effects` has the paired difference to the baseline per agent and metric. `trials` counts what
        happened per arm, and `judging` what judges took. `agreement` is that of the judges, as `Panel.summary` has it.
        """
        manifest = self._manifest
        scales = {entry["metric"]: {key: entry[key] for key in _SCALE} for entry in manifest["scorers"]}
        scorers = {scorer: entry["repetitions"] for scorer, entry in self._scorers.items()}
        baseline = manifest["baseline"]
        return {
            "run": manifest["run"],
            "evaluation": manifest["evaluation"],
            "simulated": manifest["simulated"],
            "baseline": baseline,
            "neutral": manifest["neutral"],
            "scales": scales,
            "scorers": [
                {"metric": entry["metric"], "judge": entry["judge"], **{key: entry[key] for key in _SCALE}}
                for entry in manifest["scorers"]
            ],
            "planned": manifest["trials"],
            "judges": manifest["judges"],
            "trials": [_trials(arm, tally, manifest["conditions"][arm[1]]) for arm, tally in self._tallies.items()],
            "arms": [
                _arm(
                    arm,
                    scorer,
                    self._cells[arm][scorer],
                    scales[scorer[0]]["bands"],
                    tally.answered * repetitions,
                )
                for arm, tally in self._tallies.items()
                for scorer, repetitions in scorers.items()
            ],
            "effects": [
                _effect((agent, condition), scorer, self._cells, baseline)
                for agent, condition in self._tallies
                if condition != baseline
                for scorer in scorers
            ],
            "judging": [
                {"agent": agent, "condition": condition, "judge": judge, **attrs.asdict(took)}
                for (agent, condition), judges in self._judging.items()
                for judge, took in judges.items()
            ],
            "agreement": self._panel.summary(),
        }

    def _number(self, sample: str) -> int:
        return self._samples.setdefault(sample, len(self._samples))


def _trials(arm: ArmKey, tally: Tally, condition: Mapping[str, Any]) -> dict[str, Any]:
    required = condition["require_mcp_tool_use"] or condition["require_mcp_tool_success"]
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
        "given_up": {"model_calls": tally.model_calls_given_up, "usage": attrs.asdict(tally.usage_given_up)},
        "duration": duration.mean,
        "compliance": {"on_missing_tool_use": condition["on_missing_tool_use"], **attrs.asdict(tally.compliance)}
        if required
        else None,
    }


def _arm(arm: ArmKey, scorer: Scorer, cell: _Cell, bands: Mapping[str, float], expected: int) -> dict[str, Any]:
    found = estimate(cell.means.by_sample().values())
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
        "failures": dict(cell.failures),
        "missing": max(0, expected - cell.scored - cell.neutral - cell.unscored),
    }


def _effect(
    arm: ArmKey, scorer: Scorer, cells: Mapping[ArmKey, Mapping[Scorer, _Cell]], baseline: str
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
