"""The examination of checks: all pass when a sample's solution was done, and one fails when nothing was."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from keval import Trial
from keval.config.evaluation import Evaluation
from keval.errors import ConfigError, Problem
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.run.active_run import RunOptions
from keval.run.flow import run_plan
from keval.run.select import Selection, select
from keval_checks import Solution
from keval_instrument.findings import Defect, Examined, Figure, share_figure

FIGURES: Mapping[str, str] = {
    "solutions": "The share of samples whose solution passes all checks.",
    "untouched": "The share of samples of which a check fails when nothing was done.",
    "unsolved": "How many samples have no solution, so that neither is known.",
}

_Done: TypeAlias = Literal["solution", "nothing"]
_NAMES: Mapping[_Done, str] = {"solution": "solutions", "nothing": "untouched"}
_AGENTS = ("checks/solution", "checks/nothing")


@attrs.frozen
class _Row:
    """What was found of a sample when its solution or nothing was done, by one check or as a whole.

    `passed` says whether it is as it should be, and `reason` what was found.
    """

    done: _Done
    sample: str
    passed: bool
    reason: str
    check: str | None = None


async def examine(evaluation: Evaluation, options: RunOptions) -> Examined:
    """Do every solution, and then nothing, under the first condition and without a model, and see what checks find.

    Raises:
        ConfigError: the config, a sample or a solution is wrong, or no sample has a solution.
        PreflightError: a workspace cannot be made, or a server does not start.
    """
    evaluation = _without_model(evaluation)
    plan = make_plan(evaluation, scored=False)
    solved = _with_solution(plan)
    chosen = make_plan(attrs.evolve(evaluation, sample_ids=tuple(solved), limit=None))
    # What solutions leave is no result of the evaluation, and no run of it.
    with tempfile.TemporaryDirectory(prefix="keval-check-") as results:
        run, _ = await run_plan(chosen, Path(results), options)
        # In the order of `_AGENTS`.
        solution, _ = (agent.label for agent in chosen.agents)
        rows = [row for trial in run.trials() for row in _rows(trial, solves=trial.agent == solution)]
    order = {sample: number for number, sample in enumerate(solved)}
    rows.sort(key=lambda row: (order[row.sample], row.done != "solution"))
    figures: list[Figure] = []
    for done, name in _NAMES.items():
        passed: dict[str, bool] = {}
        for row in (row for row in rows if row.done == done):
            passed[row.sample] = passed.get(row.sample, True) and row.passed
        figures.append(share_figure(name, {}, passed, "no check looks at any sample"))
    unsolved = len(plan.samples) - len(solved)
    figures.append(Figure("unsolved", {}, unsolved, len({row.sample for row in rows}) + unsolved, unit="count"))
    defects: list[Defect] = []
    for row in (row for row in rows if not row.passed):
        which = f", check {row.check!r}" if row.check is not None else ""
        defects.append(Defect(f"{row.done}{which}: {row.reason}", row.sample))
    return Examined("verify", tuple(figures), tuple(defects))


def _without_model(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation for agents without a model, under its first condition, with nothing to score but checks."""
    selection = Selection(agents=_AGENTS, conditions=tuple(evaluation.conditions)[:1], repetitions=1, executor="local")
    found = select(evaluation, selection)
    # No agent without a model uses tools because a condition requires it.
    conditions = {
        label: attrs.evolve(each, require_mcp_tool_use=False, require_mcp_tool_success=False)
        for label, each in found.conditions.items()
    }
    return attrs.evolve(
        found,
        sections=(),
        conditions=conditions,
        # Every sample is examined, however many solutions fail.
        execution=attrs.evolve(found.execution, max_failures=None),
        budget=attrs.evolve(found.budget, trials=None),
        metrics=(),
        judges=(),
        rubrics=(),
        middleware=(),
    )


def _with_solution(plan: Plan) -> list[str]:
    """Return the ids of samples that have a solution.

    Raises ConfigError: there is none, or one is wrong, or no check looks at it.
    """
    problems, found = [], []
    for sample in plan.samples:
        if sample.solution is not None:
            found.append(sample.id)
            place = plan.dataset.place(sample.id)
            try:
                Solution.read(sample.solution)
            except ValueError as error:
                problems.append(Problem(place, str(error)))
            if not plan.evaluation.header.verify and not sample.verify:
                problems.append(Problem(place, "no check looks at the solution; add `verify:` here or to the config"))
    if not found:
        told = "no sample has a solution; add `solution:`, such as a command that does what is asked"
        problems.append(Problem(str(plan.dataset.path), told))
    if problems:
        raise ConfigError(problems)
    return found


def _rows(trial: Trial, *, solves: bool) -> Iterator[_Row]:
    end = trial.transcript.end_state if trial.transcript is not None else None
    checks = end.checks if end is not None else ()
    done: _Done = "solution" if solves else "nothing"
    if trial.failure is not None:
        yield _Row(done, trial.sample.id, False, trial.failure.message)
    elif solves:
        for check in checks:
            yield _Row(done, trial.sample.id, check.passed is True, check.reason, check.name)
    else:
        # A check that fails shows what is to be done; one that says nothing is the next best.
        telling = next((check for passed in (False, None) for check in checks if check.passed is passed), None)
        reason = "all checks pass, though nothing was done" if telling is None else telling.reason
        failed = telling is not None and telling.passed is False
        yield _Row(done, trial.sample.id, failed, reason, telling.name if telling is not None else None)
