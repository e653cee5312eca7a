"""Two arms held against each other, of one run and of two."""

from __future__ import annotations

import json

import attrs
import pytest

from keval import RunError, open_run
from keval_analysis.comparison import RunArm, arms_of, compare_arms
from keval_viewer.report_page.arms import arm_differences
from keval_viewer.report_page.effects import paired_scores
from tests.conftest import Project

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {{logged: {{type: recorded, path: {answers}.jsonl}}}}
conditions:
  baseline: {{system_prompt: "Answer."}}
  careful: {{system_prompt: "Answer.\\n{told}"}}
metrics:
  - basic/contains: {{any_of: [Oslo]}}
  - basic/turns
"""
QUESTIONS = "".join(json.dumps({"id": f"q{n}", "question": f"Where, {n}?"}) + "\n" for n in range(6))


def answers(baseline: str, careful: str) -> str:
    texts = {"O": "In Oslo.", "P": "In Paris."}
    lines = [
        {"id": f"q{n}", "condition": condition, "response": texts[letter]}
        for condition, letters in (("baseline", baseline), ("careful", careful))
        for n, letter in enumerate(letters)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def runs(project: Project) -> Project:
    project.write(
        one_yaml=CONFIG.format(answers="one", told="Be careful."),
        two_yaml=CONFIG.format(answers="two", told="Be brief."),
        questions_jsonl=QUESTIONS,
        one_jsonl=answers("OPPPPP", "OOOOPP"),
        two_jsonl=answers("OPPPPP", "POOOOO"),
    )
    assert [0, 0] == [project.keval("run", config, "-q").code for config in ("one.yaml", "two.yaml")]
    return project


def test_the_effects_between_arms_of_a_run_are_those_of_its_summary(runs: Project) -> None:
    run = open_run(next(runs.root.glob("results/one/*")))
    baseline, careful = arms_of(run)

    found = compare_arms(careful, baseline)

    summary = run.summary()
    unadjusted = [attrs.evolve(each, p_adjusted=None, verdict="unknown") for each in summary.effects]
    assert unadjusted == [attrs.evolve(each, p_adjusted=None, verdict="unknown") for each in found.effects]
    contains = ("basic/contains", None)
    assert [(0, 1), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)] == [
        (int(each.sample[1:]), each.before) for each in found.scores[contains]
    ]
    pairs = paired_scores(found, contains)["pairs"]
    assert ["q1", "q2", "q3"] == sorted(sample for sample, before, now, _ in pairs if now > before)
    assert not [sample for sample, before, now, _ in pairs if now < before]
    assert "<ins>Be careful.</ins>" in arm_differences(found)


def test_an_arm_is_held_against_the_same_arm_of_another_run(runs: Project) -> None:
    one, two = (open_run(next(runs.root.glob(f"results/{name}/*"))) for name in ("one", "two"))

    found = compare_arms(RunArm(two, "logged", "careful"), RunArm(one, "logged", "careful"))

    contains = ("basic/contains", None)
    pairs = paired_scores(found, contains)["pairs"]
    assert ["q0"] == [sample for sample, before, now, _ in pairs if now < before]
    assert ["q4", "q5"] == sorted(sample for sample, before, now, _ in pairs if now > before)
    assert {"run"} == {effect.kind for effect in found.effects}
    assert {"evaluation", "answers of agent logged", "prompt of careful"} <= {each.what for each in found.differences}
    told = arm_differences(found)
    assert ("<del>Be careful.</del>" in told, "<ins>Be brief.</ins>" in told) == (True, True)
    with pytest.raises(RunError, match="has no agent 'logged' under the condition 'none'"):
        compare_arms(RunArm(one, "logged", "none"), RunArm(two, "logged", "careful"))
