"""The events of a run as lines of JSON on stderr, as a hook plugin: `--log-format json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from keval.hookspecs import hookimpl
from keval.manifest import Manifest
from keval.records import Failure, Trial
from keval.report.terminal import log_event
from keval.scores import ScoreLine
from keval.summary import Summary

__all__ = ["EventLog"]


class EventLog:
    """Writes what happens in a run, each event when it happens. docs/config.md tells the fields."""

    @hookimpl
    def keval_run_started(self, directory: Path, manifest: Manifest) -> None:
        log_event(
            "run_started",
            run=manifest.run,
            directory=str(directory),
            evaluation=manifest.evaluation,
            trials=manifest.trials,
            agents=list(manifest.agents),
            conditions=list(manifest.conditions),
            simulated=list(manifest.simulated),
            replayed=manifest.replay and manifest.replay.run,
        )

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        log_event(
            "trial_finished",
            trial=trial.id,
            agent=trial.agent,
            condition=trial.condition,
            sample=trial.sample.id,
            repetition=trial.repetition,
            seconds=trial.transcript.duration if trial.transcript else None,
            attempts_before=len(trial.attempts),
            failure=_failure(trial.failure),
        )

    @hookimpl
    def keval_endpoint_changed(self, model: str, at_once: int | None, down: bool) -> None:
        log_event("endpoint_changed", model=model, at_once=at_once, down=down)

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
        told = [
            {
                "metric": line.metric,
                "judge": line.judge,
                "judge_repetition": line.judgement.repetition if line.judgement else None,
                "value": line.score.value,
                "neutral": line.score.neutral,
                "failure": _failure(line.failure),
            }
            for line in scores
        ]
        log_event("trial_scored", trial=trial.id, scores=told, late=late)

    @hookimpl
    def keval_run_finished(self, directory: Path, summary: Summary) -> None:
        log_event(
            "run_finished",
            run=summary.run,
            directory=str(directory),
            planned=summary.planned,
            trials=sum(arm.trials for arm in summary.trials),
            failed=sum(arm.failed for arm in summary.trials),
            scores_failed=sum(arm.failed for arm in summary.arms),
            scores_missing=sum(arm.missing for arm in summary.arms),
            elapsed=summary.elapsed,
            stopped=summary.stopped,
        )


def _failure(failure: Failure | None) -> dict[str, object] | None:
    """Describe a failure without its traceback, which the run's files have."""
    if failure is None:
        return None
    return attrs.asdict(failure, filter=attrs.filters.exclude(attrs.fields(Failure).traceback))
