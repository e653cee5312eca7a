"""Judges that compare: whom they are handed, when, and what their preferences become in a report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import Project

WORDS: Mapping[str, tuple[int, int]] = {"a": (1, 5), "b": (2, 5), "c": (3, 3), "d": (4, 2), "e": (1, 4), "f": (1, 4)}
"""How many words each sample is answered with: under the baseline, and with documents."""
CONFIG = """
name: compared
dataset: {path: questions.jsonl}
agents: {old: {type: recorded, path: old.jsonl}}
conditions: {plain: {}, with_docs: {}}
judges: {longer: {type: double/longer, journal: journal.txt}}
"""
VALUES = {"a": 1.0, "b": 1.0, "c": 0.0, "d": -1.0, "e": 1.0, "f": 1.0}


def answers(*, failed: str = "") -> str:
    lines = [
        {"id": name, "condition": condition, **({"error": "gone"} if f"{condition}/{name}" == failed else response)}
        for name, counts in WORDS.items()
        for condition, count in zip(("plain", "with_docs"), counts, strict=True)
        for response in [{"response": " ".join(["word"] * count)}]
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def compared(project: Project) -> Project:
    questions = "".join(json.dumps({"id": name, "question": f"{name}?"}) + "\n" for name in WORDS)
    project.write(eval_yaml=CONFIG, questions_jsonl=questions, old_jsonl=answers())
    return project


def preferences(project: Project, condition: str = "with_docs") -> dict[str, Any]:
    return {each["sample"]: each["value"] for each in project.lines("scores.jsonl") if each["condition"] == condition}


def journal(project: Project) -> list[str]:
    return (project.root / "journal.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("executor", ["local", "double/apart"])
def test_each_answer_is_compared_with_that_of_the_baseline(compared: Project, executor: str) -> None:
    outcome = compared.keval("run", "eval.yaml", "--executor", executor)

    assert 0 == outcome.code, outcome.stderr
    assert VALUES == preferences(compared)
    assert dict.fromkeys(WORDS, 0.0) == preferences(compared, "plain")
    assert len(WORDS) == len(journal(compared))
    assert "a 1: 24 to 4" in journal(compared)
    assert {0} == {
        each["judgement"]["model_calls"] for each in compared.lines("scores.jsonl") if each["condition"] == "plain"
    }
    (rate,) = compared.read("summary.json")["win_rates"]
    assert ("with_docs", "plain", 6, 4, 1, 1) == tuple(
        rate[key] for key in ("condition", "against", "n", "wins", "ties", "losses")
    )
    assert 0.75 == pytest.approx(rate["rate"])


def test_only_answers_that_are_compared_count_as_judgements(compared: Project) -> None:
    outcome = compared.keval("validate", "eval.yaml")

    assert "valid; 12 trials (6 samples), 6 judgements by longer" in outcome.stdout


def test_a_report_tells_the_win_rate_and_no_worst_scores_of_the_baseline(compared: Project) -> None:
    compared.keval("run", "eval.yaml")

    told = "win rate, preference: 75 % [0, 100], 4 won, 1 tied, 1 lost, n=6"
    assert told in compared.keval("report", "latest").stdout
    worst = compared.keval("show", "latest", "--worst", "preference", "--json").data
    assert ["d", "c", "a"] == [each["trial"].split("/")[2] for each in worst["trials"][:3]]
    assert 6 == worst["scored"]


def test_a_gate_on_the_effect_holds_where_answers_are_preferred(compared: Project) -> None:
    gate = ("--fail-under", "low(with_docs/preference) > +0", "--strict")
    assert 1 == compared.keval("run", "eval.yaml", *gate).code
    names = [f"q{number}" for number in range(20)]
    compared.write(
        questions_jsonl="".join(json.dumps({"id": name, "question": "?"}) + "\n" for name in names),
        old_jsonl="".join(
            json.dumps({"id": name, "condition": condition, "response": response}) + "\n"
            for name in names
            for condition, response in (("plain", "Yes"), ("with_docs", "Yes, it does"))
        ),
    )

    assert 0 == compared.keval("run", "eval.yaml", *gate).code


def test_an_answer_without_a_counterpart_is_unscored_and_compared_when_there_is_one(compared: Project) -> None:
    compared.write(old_jsonl=answers(failed="plain/a"))

    assert 3 == compared.keval("run", "eval.yaml").code

    assert {**VALUES, "a": None} == preferences(compared)
    (line,) = [each for each in compared.lines("scores.jsonl") if each["value"] is None]
    assert ("the trial failed under 'plain' to compare with", None) == (line["reason"], line["failure"])
    compared.write(old_jsonl=answers())
    assert 0 == compared.keval("resume", "latest", "--retry-failed", "--force").code
    assert (VALUES, 6) == (preferences(compared), len(journal(compared)))


def test_a_run_that_was_killed_while_it_compared_goes_on(compared: Project) -> None:
    compared.write(eval_yaml=f"{CONFIG}execution: {{judge_repetitions: 2, max_concurrent: 1}}\n")
    assert -9 == compared.fork("run", "eval.yaml", env={"LONGER_DIES_AFTER": "5"}).code
    assert 5 == len(journal(compared))

    compared.keval("resume", "latest")

    # The judgement that was under way is made again.
    assert 2 * len(WORDS) <= len(journal(compared)) <= 2 * len(WORDS) + 1
    assert VALUES == preferences(compared)
    assert 2 * 2 * len(WORDS) == len(compared.lines("scores.jsonl"))


def test_a_run_is_scored_again_against_the_same_trials(compared: Project) -> None:
    compared.keval("run", "eval.yaml")

    compared.keval("score", "latest")

    assert VALUES == preferences(compared)
    assert journal(compared)[:6] == journal(compared)[6:]


def test_another_condition_may_be_compared_with(compared: Project) -> None:
    compared.write(eval_yaml=CONFIG.replace("journal: journal.txt", "against: with_docs"))

    compared.keval("run", "eval.yaml")

    assert {name: -value for name, value in VALUES.items()} == preferences(compared, "plain")
    (rate,) = compared.read("summary.json")["win_rates"]
    assert ("plain", "with_docs", 1, 4) == tuple(rate[key] for key in ("condition", "against", "wins", "losses"))


def test_judges_agree_on_what_they_were_asked_about(compared: Project) -> None:
    judges = "{one: {type: double/longer}, two: {type: double/longer}}"
    compared.write(eval_yaml=CONFIG.replace("{longer: {type: double/longer, journal: journal.txt}}", judges))

    compared.keval("run", "eval.yaml")

    (found,) = compared.read("summary.json")["agreement"]
    assert (6, 1.0) == (found["n"], found["alpha"])


def test_what_cannot_be_compared_is_told_where_it_stands(compared: Project) -> None:
    rubric = "rubrics: [{taste: {kind: preference, instructions: Which?, levels: {1: No., 2: Yes.}}}]\n"
    compared.write(eval_yaml=CONFIG.replace("journal: journal.txt", "against: wth_docs") + rubric)

    outcome = compared.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert "eval.yaml:5:49: no condition named 'wth_docs'; did you mean 'with_docs'?" in outcome.stderr
    assert "the levels of a rubric of the kind preference are -1, 0 and 1" in outcome.stderr


def test_a_judge_is_named_only_with_rubrics_of_its_kinds(compared: Project) -> None:
    tone = "rubrics: [{tone: {instructions: Is it polite?, levels: {1: No., 2: Yes.}}}]\n"
    compared.write(eval_yaml=CONFIG.replace("}}\n", "}, digit: {type: double/digit}}\n") + tone)

    gates = ("--fail-under", "with_docs/preference@digit >= 0", "--fail-under", "tone@longer >= 1")
    outcome = compared.keval("run", "eval.yaml", "--dry-run", *gates)

    assert 2 == outcome.code
    assert "no judge named 'digit'; its judges: longer" in outcome.stderr
    assert "no judge named 'longer'; its judges: digit" in outcome.stderr


def test_a_single_condition_leaves_nothing_to_compare(compared: Project) -> None:
    plain = [line for line in answers().splitlines() if "plain" in line]
    compared.write(
        eval_yaml=CONFIG.replace("{plain: {}, with_docs: {}}", "{plain: {}}"), old_jsonl="\n".join(plain) + "\n"
    )

    outcome = compared.keval("validate", "eval.yaml")

    assert "the judge 'longer' compares conditions, and there is none besides 'plain'; add one" in outcome.stderr


def test_a_condition_that_is_compared_with_and_left_out_is_a_notice(compared: Project) -> None:
    compared.write(eval_yaml=CONFIG.replace("journal: journal.txt", "against: plain"))

    outcome = compared.keval("run", "eval.yaml", "--dry-run", "--condition", "with_docs")

    assert 0 == outcome.code
    assert "the judge 'longer' compares with 'plain', which is left out, and will score nothing" in outcome.stderr
