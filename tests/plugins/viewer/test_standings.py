"""How the columns of a play stand: one sentence while no interval says anything."""

from __future__ import annotations

import pytest

from keval import Scale
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import ArmScore, ArmTrials, GivenUp, ScorerScale, UsageTotal
from keval_viewer.play import Column, Standings
from keval_viewer.play_page.standings import Table, table_of


def table(*differences: tuple[float, float, float]) -> Table:
    """The standings of two columns: a difference with its interval for each metric, on a scale from 0 to 1."""
    columns = [Column(agent, "docs") for agent in ("ada", "bob")]
    names = [f"m{number}" for number in range(len(differences))]
    against = Arm("ada", "docs", "r")

    def effect(metric: str, ends: tuple[float, float, float]) -> Effect:
        middle, low, high = ends
        return Effect(
            *(metric, None, "bob", "docs", against, 2, middle, 0.1),
            run="r", ci_low=low, ci_high=high, mean=0.5 + middle, against_mean=0.5,
        )  # fmt: skip

    return table_of(
        Standings(
            questions=2,
            against="ada/docs",
            scorers=tuple(ScorerScale(name, None, Scale()) for name in names),
            arms=tuple(
                ArmScore(column.agent, "docs", name, None, 2, 0.5, 0.1, None, 2, 0, 0, 0, {}, 0)
                for column in columns
                for name in names
            ),
            trials=tuple(
                ArmTrials(column.agent, "docs", 2, 0, 0, {}, 0, 2, UsageTotal(), GivenUp(), 0.5, None)
                for column in columns
            ),
            differences=tuple(map(effect, names, differences)),
        ),
        columns,
    )


def intervals(found: Table) -> list[str]:
    return [standing.interval for _, row in found.rows for standing in row if standing.interval]


def test_intervals_that_hold_every_difference_are_not_shown() -> None:
    found = table((0.25, -2.9, 3.4), (-0.3, -4.1, 3.5))

    assert (False, []) == (found.can_tell, intervals(found))
    assert ["+0.25", "-0.30"] == [row[1].difference for _, row in found.rows]


@pytest.mark.parametrize(
    "differences",
    [
        [(0.25, -2.9, 3.4), (0.3, 0.1, 0.5)],
        [(0.25, -2.9, 3.4), (0.1, -0.5, 0.7)],  # it is less than all of the scale
    ],
)
def test_one_interval_that_says_something_brings_all(differences: list[tuple[float, float, float]]) -> None:
    found = table(*differences)

    assert (True, len(differences)) == (found.can_tell, len(intervals(found)))
