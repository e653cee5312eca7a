"""A margin of a metric: equality, questions needed, gates, drops that are allowed, and the plan go by it."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.plugins.analysis.stats.test_effects import evaluated

QUESTIONS = "".join(f'{{"id": "s{number}", "question": "{number}?"}}\n' for number in range(40))
ALIKE = {f"s{number}": [0.5 + number % 4 / 10] for number in range(40)}
NEAR = {name: [values[0] + (0.02 if number % 2 else -0.02)] for number, (name, values) in enumerate(ALIKE.items())}


@pytest.mark.parametrize(("margin", "verdict"), [("", "unclear"), ("margin: {number/rating: 20%}\n", "same")])
def test_arms_are_equal_within_the_margin(project: Project, margin: str, verdict: str) -> None:
    summary = evaluated(project, {("one", "baseline"): ALIKE, ("one", "docs"): NEAR}, more=margin)

    (effect,) = summary["effects"]
    assert verdict == effect["verdict"]
    told = project.keval("report", summary["run"], "--explain").stdout
    assert ("no difference as large as 0.2" in told) == bool(margin)


def test_the_questions_needed_are_those_that_show_the_margin(project: Project) -> None:
    apart = {name: [min(1.0, values[0] + number % 3 / 5)] for number, (name, values) in enumerate(NEAR.items())}
    needed = []
    for margin in (0.05, 0.02):
        arms = {("one", "baseline"): ALIKE, ("one", "docs"): {**apart, "s0": [0.0], "s1": [0.0], "s2": [0.1]}}
        more = f"margin: {{number/rating: {margin}}}\ngates: [low(docs/number/rating) > -margin]\n"
        summary = evaluated(project, arms, more=more)
        needed.append(summary["effects"][0]["needed_samples"])
        assert -margin == summary["gates"][0]["threshold"]

    assert needed[1][0] > 4 * needed[0][0]


def test_a_drop_within_the_margin_is_no_regression(project: Project) -> None:
    higher = {name: [values[0] + 0.03] for name, values in ALIKE.items()}
    before = evaluated(project, {("one", "baseline"): higher}, more="margin: {number/rating: 0.04}\n")["run"]
    now = evaluated(project, {("one", "baseline"): ALIKE}, more="margin: {number/rating: 0.04}\n")["run"]

    strict = project.keval("report", now, "--fail-on-regression", before)
    within = project.keval("report", now, "--fail-on-regression", before, "--max-regression", "margin")

    assert (1, 0) == (strict.code, within.code), within.stdout


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{number/ratings: 0.1}", "no metric or rubric named 'number/ratings'; did you mean 'number/rating'?"),
        ("{number/rating: 2}", "a margin is above 0 and less than the length of the scale, 1, got 2"),
        ("{number/rating: 0}", "a margin is above 0"),
        ("{number/rating: wide}", "a margin is a number, or a share of the scale such as 5%: 'wide'"),
        ("{basic/latency: 5%}", "the scale has no end that '5%' could be a share of; write a number"),
    ],
)
def test_a_margin_that_is_none_is_refused_at_its_line(project: Project, written: str, problem: str) -> None:
    config = f"dataset: {{path: q.jsonl}}\nmargin: {written}\nmetrics: [number/rating, basic/latency]\n"
    project.write(q_jsonl=QUESTIONS, eval_yaml=f"{config}agents: {{scripted: {{}}}}\n")

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert "eval.yaml:2:" in outcome.stderr
    assert problem in outcome.stderr


@pytest.mark.slow
def test_the_plan_tells_how_many_questions_show_the_margin(project: Project) -> None:
    config = "dataset: {path: q.jsonl}\nmargin: {number/rating: 0.1}\nmetrics: [number/rating]\n"
    config += "agents: {scripted: {}}\nconditions: {baseline: {}, docs: {system_prompt: Hm.}}\n"
    project.write(q_jsonl=QUESTIONS, eval_yaml=config)

    assert "to see 0.1" in project.keval("power", "eval.yaml").stdout


def test_a_gate_that_chance_holds_is_noticed_with_the_one_that_is_sure(project: Project) -> None:
    gates = "gates: [docs/number/rating > +0, low(docs/number/rating) > +0, docs/number/rating >= -0.1]\n"
    config = f"dataset: {{path: q.jsonl}}\n{gates}metrics: [number/rating]\n"
    config += "agents: {scripted: {}}\nconditions: {baseline: {}, docs: {system_prompt: Hm.}}\n"
    project.write(q_jsonl=QUESTIONS, eval_yaml=config)

    (notice,) = project.keval("validate", "eval.yaml").stderr.splitlines()

    assert notice.startswith("note: eval.yaml:2:9: the gate 'docs/number/rating > +0' decides on the mean")
    assert "'low(docs/number/rating) > +0' is held by an effect that is sure" in notice
