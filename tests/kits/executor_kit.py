"""The check of executors."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval import Run, Trial
from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.plan.build import make_plan
from keval.plan.plan import Plan, ResolvedPlugin
from keval.run.active_run import RunOptions
from keval.run.flow import run_plan
from keval.seams.registry import Component
from keval_testing.subject import Subject, excerpt, rules_of, run_checks

EXECUTOR_RULES = rules_of("executor", json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8")))
"""The rules of executors, each with how to mend one that breaks it."""

_SAMPLES, _FAILING, _AT_ONCE = 6, ("q2", "q5"), 2
_CANCELLED_AFTER, _PATIENCE = 0.3, 30.0
"""Seconds after which a run is cancelled, and in which it must end then."""


def check_executor(
    executor: str | type | object, *, options: Mapping[str, Any] | None = None, cannot: Mapping[str, str] | None = None
) -> None:
    """Check an executor, given by its name, as a class or as an instance: it runs an evaluation as `local` does.

    The evaluation needs nothing but keval; some of its trials fail. `options` are those of a config. `cannot` names
    rules that what the executor is built on does not allow it to keep, each with the reason.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such executor is installed, or `options` do not construct it.
    """
    subject = Subject.of("keval.executors", executor, options, EXECUTOR_RULES, cannot)
    if subject.check_options():
        with tempfile.TemporaryDirectory() as folder:
            check = _Check(subject, Path(folder))
            run_checks(subject, check.first_use(), check.run)
    subject.finish()


@attrs.frozen
class _Check:
    subject: Subject
    folder: Path

    async def first_use(self) -> None:
        await self._run("first use", self.subject.new(), samples=1)

    async def run(self) -> None:
        here = await self._run("local", None)
        there = await self._run("there", self.subject.new())
        if here is None or there is None:
            return
        self._check_trials(here, there)
        if not self.subject.found:
            if [line.score for line in here.scores()] != [line.score for line in there.scores()]:
                self.subject.broken("same scores", "the scores differ from those of the executor local")
            run = await self._run("slow", self.subject.new(), delay=0.1)
            if run is not None and (most := _most_at_once([*run.trials()])) > _AT_ONCE:
                self.subject.broken("limits", f"{most} trials ran at once, and {_AT_ONCE} may")
        await self._check_cancellation()

    async def _run(self, name: str, executor: Any, *, delay: float = 0.0, samples: int = _SAMPLES) -> Run | None:
        """Run the evaluation, and return the run; `None` if the executor failed."""
        try:
            run, _ = await run_plan(self._plan(executor, delay, samples), self.folder / name, RunOptions())
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.subject.broken("every trial", f"the run ended with {excerpt(error)}")
            return None
        return run

    def _plan(self, executor: Any, delay: float, samples: int) -> Plan:
        path = self.folder / "questions.jsonl"
        lines = [f'{{"id": "q{number}", "question": "How much is {number}?"}}\n' for number in range(1, samples + 1)]
        path.write_text("".join(lines), encoding="utf-8")
        data: dict[str, Any] = {
            "name": "executor",
            "dataset": {"path": str(path)},
            "agents": {"echo": {"type": "testing/echo", "fails": [*_FAILING], "delay": delay}},
            "conditions": {"baseline": {}, "terse": {"system_prompt": "Be terse."}},
            "metrics": ["testing/words"],
            "execution": {"max_concurrent": _AT_ONCE},
        }
        evaluation = read_evaluation(Source("the config", self.folder, data))
        plan = make_plan(evaluation)
        if executor is None:
            return plan
        # What was given as a class or an instance has no name that a config could have.
        cls = type(executor)
        component = Component("keval.executors", self.subject.name, f"{cls.__module__}:{cls.__name__}", "keval", "")
        return attrs.evolve(plan, executor=ResolvedPlugin(self.subject.name, component, executor))

    def _check_trials(self, here: Run, there: Run) -> None:
        expected, found = _outcomes(here), _outcomes(there)
        if missing := sorted(expected.keys() - found.keys()):
            self.subject.broken("every trial", f"{len(missing)} of {len(expected)} trials are missing: {missing[0]}")
        if there.count_trials() > len(found):
            self.subject.broken("every trial", "a trial was handed over twice")
        for name in sorted(expected.keys() & found.keys()):
            if expected[name] != found[name]:
                told = f"{name} is {excerpt(found[name])} instead of {excerpt(expected[name])}"
                self.subject.broken("same trials", told)

    async def _check_cancellation(self) -> None:
        task = asyncio.create_task(self._run("cancelled", self.subject.new(), delay=3600.0))
        await asyncio.wait([task], timeout=_CANCELLED_AFTER)
        task.cancel()
        await asyncio.wait([task], timeout=_PATIENCE)
        if not task.done():
            self.subject.broken("cancellation", f"a run that was cancelled still ran after {_PATIENCE:g} s")
        elif not task.cancelled():
            self.subject.broken("cancellation", "a run that was cancelled ended as if it was not")


def _outcomes(run: Run) -> dict[str, tuple[str, str | None]]:
    """Return the answer of each trial, and the kind of its failure if it failed."""
    return {trial.id: (trial.output, trial.failure.kind if trial.failure else None) for trial in run.trials()}


def _most_at_once(trials: list[Trial]) -> int:
    """Return how many trials ran at one time, by what their transcripts tell."""
    spans = [
        (trial.transcript.started, trial.transcript.started + trial.transcript.duration)
        for trial in trials
        if trial.transcript and trial.transcript.started is not None and trial.transcript.duration is not None
    ]
    return max((sum(begin <= moment < end for begin, end in spans) for moment, _ in spans), default=0)
