"""The examination of checks: all pass when a sample's solution was done, and one fails when nothing was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keval.config.evaluation import Evaluation
from keval.run.active_run import RunOptions
from keval_instrument.findings import Defect, Examined, Figure, share_figure
from keval_instrument.verify import Row, narrowed, oracle

FIGURES: Mapping[str, str] = {
    "solutions": "The share of samples whose solution passes all checks.",
    "untouched": "The share of samples of which a check fails when nothing was done.",
    "unsolved": "How many samples have no solution, so that neither is known.",
}

_NAMES = {"solution": "solutions", "nothing": "untouched"}


async def examine(evaluation: Evaluation, options: RunOptions) -> Examined:
    """Run the checks on solutions, and on nothing done, under the first condition and without a model.

    Raises:
        ConfigError: the config, a sample or a solution is wrong, or no sample has a solution.
        PreflightError: a workspace cannot be made, or a server does not start.
    """
    found = await oracle(narrowed(evaluation, None), options)
    figures = [_figure(name, [row for row in found.rows if row.examination == of]) for of, name in _NAMES.items()]
    samples = len({row.sample for row in found.rows}) + found.without_solution
    figures.append(Figure("unsolved", {}, found.without_solution, samples, unit="count"))
    return Examined("verify", tuple(figures), tuple(map(_defect, found.wrong)))


def _figure(name: str, rows: Sequence[Row]) -> Figure:
    """Return the share of samples with nothing wrong."""
    passed: dict[str, bool] = {}
    for row in rows:
        passed[row.sample] = passed.get(row.sample, True) and row.passed
    return share_figure(name, {}, passed, "no check looks at any sample")


def _defect(row: Row) -> Defect:
    which = f", check {row.check!r}" if row.check is not None else ""
    return Defect(f"{row.examination}{which}: {row.reason}", row.sample)
