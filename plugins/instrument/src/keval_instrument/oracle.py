"""The oracle: runs a config without a model, by samples' solutions and by doing nothing, and says what checks find."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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

Examined: TypeAlias = Literal["solution", "nothing"]

_AGENTS = ("checks/solution", "checks/nothing")


@attrs.frozen
class Row:
    """What an examination found of a sample, by one check or as a whole (`check` is `None` then).

    `passed` says whether it is as it should be, and `reason` what was found.
    """

    examination: Examined
    sample: str
    passed: bool
    reason: str
    check: str | None = None


@attrs.frozen
class Examination:
    """All that was found, and how many samples have no solution to be examined with."""

    rows: tuple[Row, ...]
    without_solution: int

    @property
    def wrong(self) -> tuple[Row, ...]:
        """What is not as it should be."""
        return tuple(row for row in self.rows if not row.passed)


def narrowed(evaluation: Evaluation, condition: str | None) -> Evaluation:
    """Return the evaluation for agents without a model, under one condition, with nothing to score but checks."""
    chosen = condition or next(iter(evaluation.conditions), None)
    selection = Selection(agents=_AGENTS, conditions=(chosen,) if chosen else (), repetitions=1, executor="local")
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
        execution=attrs.evolve(found.execution, max_failures=None),
        budget=attrs.evolve(found.budget, trials=None),
        metrics=(),
        judges=(),
        rubrics=(),
        middleware=(),
    )


async def oracle(evaluation: Evaluation, options: RunOptions) -> Examination:
    """Do every solution, and then nothing, and see what the checks find: all must pass, and one must fail.

    Raises:
        ConfigError: the config, a sample or a solution is wrong, or there is nothing to examine.
        PreflightError: a workspace cannot be made, or a server does not start.
    """
    plan = make_plan(evaluation, scored=False)
    solved = _with_solution(plan)
    chosen = make_plan(attrs.evolve(evaluation, sample_ids=tuple(solved), limit=None))
    with tempfile.TemporaryDirectory(prefix="keval-check-") as results:
        run, _ = await run_plan(chosen, Path(results), options)
        solution, _ = (agent.label for agent in chosen.agents)
        rows = [row for trial in run.trials() for row in _rows(trial, solves=trial.agent == solution)]
    order = {sample: number for number, sample in enumerate(solved)}
    rows.sort(key=lambda row: (order[row.sample], row.examination != "solution"))
    return Examination(tuple(rows), len(plan.samples) - len(solved))


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


def _rows(trial: Trial, *, solves: bool) -> Iterator[Row]:
    end = trial.transcript.end_state if trial.transcript is not None else None
    checks = end.checks if end is not None else ()
    examination: Examined = "solution" if solves else "nothing"
    if trial.failure is not None:
        yield Row(examination, trial.sample.id, False, trial.failure.message)
    elif solves:
        for check in checks:
            yield Row(examination, trial.sample.id, check.passed is True, check.reason, check.name)
    else:
        telling = next((check for check in checks if check.passed is False), None)
        if telling is None:
            telling = next((check for check in checks if check.passed is None), None)
        reason = "all checks pass, though nothing was done" if telling is None else telling.reason
        failed = telling is not None and telling.passed is False
        yield Row(examination, trial.sample.id, failed, reason, telling.name if telling is not None else None)
