"""What a run is to decide, and what stands beside it as exploratory; costs; lost scores that count as the worst."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Project
from tests.plugins.analysis.stats.test_effects import evaluated

LOW, HIGH = ([0.1 + number % 5 / 50 + more for number in range(12)] for more in (0.0, 0.4))
METRICS = "metrics: [number/rating, basic/latency]\n"


def arm(values: list[float]) -> dict[str, list[object]]:
    return {f"s{number}": [value] for number, value in enumerate(values)}


def families(summary: Any) -> set[tuple[str, str, int]]:
    return {(each["kind"], each["family"], each["family_size"]) for each in summary["effects"]}


def test_conditions_are_decided_and_agents_beside_them_are_exploratory(project: Project) -> None:
    arms = {("one", "baseline"): LOW, ("one", "docs"): HIGH, ("two", "baseline"): HIGH, ("two", "docs"): LOW}
    summary = evaluated(project, {of: arm(values) for of, values in arms.items()})

    assert {("condition", "all", 2), ("agent", "exploratory", 2)} == families(summary)
    told = project.keval("report", summary["run"], "--explain").stdout
    block = told[told.index("two against one") :]
    assert "exploratory:" in block.splitlines()[1]
    assert "exploratory: the effect of docs differs between agents: rating by" in told


def test_agents_are_decided_where_there_is_one_condition(project: Project) -> None:
    summary = evaluated(project, {("one", "baseline"): arm(LOW), ("two", "baseline"): arm(HIGH)})

    assert {("agent", "all", 1)} == families(summary)
    assert "exploratory" not in project.keval("report", summary["run"]).stdout


def test_a_cost_is_said_by_its_adjusted_p_and_as_a_ratio(project: Project) -> None:
    """Seconds rise by a half throughout, however long a question takes; the difference alone does not show it."""
    for name, times in (("one", 1.0), ("two", 1.5)):
        seconds = [(0.3 + number % 3 / 100) * 2 ** (number % 8) * times for number in range(24)]
        rows = [
            f'{{"id": "s{number}", "response": "0.5", "response_time": {took}}}' for number, took in enumerate(seconds)
        ]
        (project.root / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    questions = "\n".join(f'{{"id": "s{number}", "question": "{number}?"}}' for number in range(24))
    agents = "agents: {one: {type: recorded, path: one.jsonl}, two: {type: recorded, path: two.jsonl}}"
    config = f"dataset: {{path: q.jsonl}}\n{agents}\nmetrics: [number/rating]\n"
    project.write(q_jsonl=questions, eval_yaml=config)

    outcome = project.keval("run", "eval.yaml", "--json")

    (seconds_effect,) = (each for each in outcome.data["expenses"] if each["metric"] == "seconds")
    ratio = seconds_effect["ratio"]
    assert pytest.approx(1.5) == ratio["value"]
    assert 1 < ratio["ci_low"] <= 1.5 <= ratio["ci_high"]
    assert (2, True) == (seconds_effect["family_size"], ratio["p_adjusted"] < 0.05)
    told = project.keval("report", outcome.data["run"]).stdout
    assert "cost of an answer (exploratory): " in told
    assert "(× 1.5)" in told
    assert "1.50 times the seconds" in project.keval("report", outcome.data["run"], "--explain").stdout


def test_failed_trials_count_as_the_worst_where_the_config_says_so(project: Project) -> None:
    lost = arm([*HIGH[:8], *([0.0] * 4)]) | {f"s{number}": [OSError("down")] for number in range(8, 12)}
    arms = {("one", "baseline"): arm(LOW), ("one", "docs"): lost}
    omitted = evaluated(project, arms)["effects"][0]

    summary = evaluated(project, arms, more="failed: worst\n")

    (effect,) = summary["effects"]
    assert (8, "better") == (omitted["n"], omitted["verdict"])
    expected = sum(HIGH[:8]) / 12 - sum(LOW) / 12
    assert (12, pytest.approx(expected)) == (effect["n"], effect["difference"])
    assert (None, None) == (effect["bound_low"], effect["bound_high"])
    kept = effect["without_lost"]
    assert (8, pytest.approx(0.4), "better") == (kept["n"], kept["difference"], kept["verdict"])
    told = " ".join(project.keval("report", summary["run"]).stdout.split())
    assert "without the trials that count as the worst score, as they have none: rating +0.40" in told


def test_unscored_answers_count_as_the_worst_where_the_other_arm_has_a_score(project: Project) -> None:
    docs = arm(HIGH) | {"s0": ["unscored"], "s1": ["unscored"]}
    before = arm(LOW) | {"s1": ["unscored"]}

    summary = evaluated(project, {("one", "baseline"): before, ("one", "docs"): docs}, more="unscored: worst\n")

    (effect,) = summary["effects"]
    assert 11 == effect["n"]
    assert pytest.approx((sum(HIGH[2:]) - sum(LOW[2:]) - LOW[0]) / 11) == effect["difference"]


def test_an_arm_with_far_more_answers_without_a_score_is_named(project: Project) -> None:
    docs = arm(HIGH) | {"s0": ["unscored"]}

    summary = evaluated(project, {("one", "baseline"): arm(LOW), ("one", "docs"): docs})

    told = project.keval("report", summary["run"]).stdout
    assert "caution  rating gives 1 of 12 answers of one docs no score; effects are of the others" in told
