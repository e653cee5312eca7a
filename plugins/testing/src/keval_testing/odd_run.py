"""A run on disk with everything that an exporter may meet: odd answers, failures, scores of every kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from keval import Run, Sample, Scale, Score, Transcript, Trial
from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import TrialError
from keval.plan.build import make_plan
from keval.plan.plan import Plan, ResolvedPlugin, Scorers
from keval.run.flow import run_plan
from keval.seams.contexts import Context
from keval.seams.registry import Component
from keval_testing.unusual_trials import failed_trials, odd_trials

_NAME = 'an odd, "quoted" & <marked> run'
_CONDITIONS = {"baseline": {}, "more + odd": {"system_prompt": "Answer\n{{ question }}\r\n\u2028=SUM(A1) <b>"}}


async def make_odd_run(root: Path) -> Run:
    """Make the run under `root`, and return it."""
    plan = in_process_plan(
        {"name": _NAME, "conditions": _CONDITIONS, "execution": {"retry": {"initial_backoff_seconds": 0}}},
        tuple(trial.sample for trial in (*odd_trials(), *failed_trials())),
        agents={"agent": _OddAgent()},
        metrics={"odd": _OddMetric(), "seconds, =1": _Seconds()},
    )
    run, _ = await run_plan(plan, root)
    return run


def in_process_plan(
    config: Mapping[str, Any], samples: tuple[Sample, ...], *, agents: Mapping[str, Any], metrics: Mapping[str, Any]
) -> Plan:
    """Return the plan of an evaluation whose agents and metrics are objects of this process, by label."""
    named = {label: {"type": "testing/echo"} for label in agents}
    data = {"dataset": {"path": "questions.jsonl"}, "agents": named, **config}
    evaluation = read_evaluation(Source("the config", Path.cwd(), data))
    plan = make_plan(evaluation, Dataset(None, Samples.of(samples), ""), scored=False)
    scorers = Scorers(tuple(_resolved("keval.metrics", *each) for each in metrics.items()))
    return attrs.evolve(
        plan, agents=tuple(_resolved("keval.agents", *each) for each in agents.items()), scorers=scorers
    )


def _resolved(group: str, label: str, plugin: Any) -> ResolvedPlugin:
    cls = type(plugin)
    return ResolvedPlugin(label, Component(group, label, f"{cls.__module__}:{cls.__name__}", "keval", ""), plugin)


@attrs.frozen
class _OddAgent:
    """Has the transcript of the odd trial that a sample is named after."""

    characteristics: ClassVar[Mapping[str, Any]] = {"files": 3}
    _trials: Mapping[str, Trial] = attrs.field(init=False)

    @_trials.default
    def _by_name(self) -> Mapping[str, Trial]:
        return {trial.sample.id: trial for trial in (*odd_trials(), *failed_trials())}

    async def run(self, sample: Sample, context: Context) -> Transcript:
        trial = self._trials[sample.id]
        if trial.failure is not None:
            raise TrialError(trial.failure.message, kind=trial.failure.kind, retryable=bool(trial.attempts))
        # No server of a context has the tools of these trials.
        return attrs.evolve(trial.transcript or Transcript(), tools=None)


@attrs.frozen
class _OddMetric:
    """Gives values, neutral scores, none, and failures, with details of every kind."""

    scale: ClassVar[Scale] = Scale(0, 10, bands={"low": 0, "<high>": 5})

    def score(self, trial: Trial) -> Score:
        match trial.sample.id:
            case "no golden answer":
                return Score(None, "there is no answer\nto compare with, \x1b[31m=1+2")
            case "no facts":
                return Score(5.0, "nothing to judge", neutral=True)
            case "an answer with markup":
                raise ValueError("<b>cannot</b> be scored")
        marks = [{"start": 0, "end": 3, "label": "<i>", "kind": "good"}, {"start": 9**9, "end": -1}, "no mark"]
        details = {"marks": marks, "deep": {"list": [None, 1.5, "=1+2"]}, "": True}
        return Score(float(len(trial.output) % 11), "]]> 'quoted', \"twice\" \u202e", details=details)


@attrs.frozen
class _Seconds:
    scale: ClassVar[Scale] = Scale(0, math.inf, better="lower", unit="s")

    def score(self, trial: Trial) -> Score:
        duration = trial.transcript.duration if trial.transcript else None
        return Score(duration, "" if duration is not None else "the time is unknown")
