"""Scores that are equal but for rounding make no effect, and no interval of a difference leaves the scale."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.plugins.analysis.stats.test_effects import SAMPLES, evaluated

UP, DOWN = [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]
"""Their means differ by 3e-17."""


def every(answers: list[float], count: int = 12) -> dict[str, list[float]]:
    return {f"s{number}": answers for number in range(count)}


def test_repetitions_in_another_order_make_no_effect(project: Project) -> None:
    summary = evaluated(project, {("one", "baseline"): every(UP), ("one", "with_docs"): every(DOWN)})

    (effect,) = summary["effects"]
    assert (0.0, "unclear", 0) == (effect["difference"], effect["verdict"], effect["family_size"])
    assert "got worse" not in project.keval("report", summary["run"]).stdout


def test_dust_among_real_differences_changes_nothing(project: Project) -> None:
    real = {f"r{number}": [0.2 + number / 10] * 3 for number in range(4)}
    more = {name: [value + 0.25 for value in values] for name, values in real.items()}
    dusty = evaluated(project, {("one", "baseline"): every(UP) | real, ("one", "with_docs"): every(DOWN) | more})
    clean = evaluated(project, {("one", "baseline"): every(UP) | real, ("one", "with_docs"): every(UP) | more})

    keys = ("difference", "stderr", "ci_low", "ci_high", "p", "p_adjusted", "mde", "needed_samples", "verdict")
    assert [clean["effects"][0][key] for key in keys] == [dusty["effects"][0][key] for key in keys]


def test_two_runs_with_the_same_scores_are_the_same(project: Project) -> None:
    runs = [evaluated(project, {("one", "baseline"): every(values)})["run"] for values in (UP, DOWN)]

    found = project.keval("compare", *runs, "--json").data

    assert ([0.0], []) == ([effect["difference"] for effect in found["effects"]], found["changes"])


def test_effects_that_are_alike_make_no_interaction(project: Project) -> None:
    arms = {("one", "baseline"): 0.3, ("one", "with_docs"): 0.4, ("two", "baseline"): 0.7, ("two", "with_docs"): 0.8}
    summary = evaluated(project, {arm: every([value]) for arm, value in arms.items()})

    (found,) = summary["interactions"]
    assert (0.0, None) == (found["difference"], found["p_adjusted"]) or (0.0, 1.0) == (found["difference"], found["p"])
    assert [pytest.approx(0.1), pytest.approx(0.1)] == [
        effect["difference"] for effect in summary["effects"] if effect["kind"] == "condition"
    ]


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_no_interval_leaves_the_scale(project: Project, count: int) -> None:
    names = SAMPLES[:count]
    apart = {name: [float(number % 2)] for number, name in enumerate(names)}
    low, high = ({name: [value] for name in names} for value in (0.0, 1.0))
    arms = {("one", "baseline"): low, ("one", "with_docs"): apart, ("two", "baseline"): high, ("two", "with_docs"): low}
    summary = evaluated(project, arms)

    for found in summary["effects"]:
        assert -1 <= found["worst_case"][0] <= found["ci_low"] <= found["ci_high"] <= found["worst_case"][1] <= 1
    for found in summary["interactions"]:
        assert -2 <= found["ci_low"] <= found["ci_high"] <= 2
