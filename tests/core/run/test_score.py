"""Scores: what fails is unscored and counted, what is neutral stays out of means, and a run can be scored again."""

from __future__ import annotations

import json

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/length]
"""
QUESTIONS = "".join(json.dumps({"id": name, "question": name * 10}) + "\n" for name in "ab")


def test_a_scorer_that_fails_is_unscored_and_never_a_low_score(project: Project) -> None:
    config = CONFIG.replace("[double/length]", "[double/broken, double/beyond, double/length]")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    arms = {arm["metric"]: arm for arm in outcome.data["arms"]}
    assert 3 == outcome.code
    assert (None, 2, 2) == tuple(arms["double/broken"][key] for key in ("mean", "unscored", "failed"))
    assert (None, 2, 2) == tuple(arms["double/beyond"][key] for key in ("mean", "unscored", "failed"))
    assert (0.1, 0, 0) == tuple(arms["double/length"][key] for key in ("mean", "unscored", "failed"))


def test_neutral_scores_are_shown_and_left_out_of_means(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("double/length", "double/neutral"), questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,) = outcome.data["arms"]
    assert (0, None, 2, 0) == (arm["n"], arm["mean"], arm["neutral"], arm["unscored"])


def test_neutral_scores_count_when_the_config_says_so(project: Project) -> None:
    config = CONFIG.replace("double/length", "double/neutral") + "neutral: count\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,) = outcome.data["arms"]
    assert (2, 0.5, 2) == (arm["n"], arm["mean"], arm["neutral"])


def test_a_run_is_scored_again_without_calling_an_agent(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")
    before = (project.run_directory() / "trials.jsonl").read_bytes()
    (project.root / "questions.jsonl").unlink()

    outcome = project.keval("score", "latest", "--metric", "double/neutral", "--json")

    assert (0, before) == (outcome.code, (project.run_directory() / "trials.jsonl").read_bytes())
    assert ["double/length", "double/neutral"] == [arm["metric"] for arm in outcome.data["arms"]]
    assert 4 == len(project.lines("scores.jsonl"))


def test_scoring_again_replaces_the_scores_of_that_scorer(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")
    before = project.lines("scores.jsonl")

    outcome = project.keval("score", "latest")

    assert (0, before) == (outcome.code, project.lines("scores.jsonl"))


def test_a_judge_grades_by_rubric_in_the_rubrics_scale(project: Project) -> None:
    config = CONFIG + "judges: {strict: {level: 3}, lenient: {type: strict, level: 9}}\nrubrics: [double/brevity]\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    graded = {arm["judge"]: arm for arm in outcome.data["arms"] if arm["judge"]}
    assert 3 == outcome.code
    assert (3.0, 0) == (graded["strict"]["mean"], graded["strict"]["unscored"])
    assert (None, 2) == (graded["lenient"]["mean"], graded["lenient"]["failed"])
    assert {"low": 1.0, "high": 3.0} == outcome.data["scales"]["double/brevity"]


def test_a_judge_that_cannot_be_reached_leaves_the_trials_unscored(project: Project) -> None:
    config = CONFIG + "judges: {strict: {down: true}}\nrubrics: [double/brevity]\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    failures = [line["failure"]["kind"] for line in project.lines("scores.jsonl") if line["judge"]]
    assert (3, ["down", "down"]) == (outcome.code, failures)


def test_facts_of_hook_plugins_are_frozen_in_the_run(project: Project) -> None:
    own = json.dumps({"id": "own", "question": "rain", "facts": {"truth": "rain"}}) + "\n"
    config = CONFIG.replace("double/length", "double/uses_fact") + "plugins: [double/facts]\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS + own)

    outcome = project.keval("run", "eval.yaml")

    facts = {sample["id"]: sample["facts"]["truth"] for sample in project.lines("samples.jsonl")}
    assert (0, {"a": "sun", "b": "sun", "own": "rain"}) == (outcome.code, facts)
    assert [0.0, 0.0, 1.0] == [line["value"] for line in project.lines("scores.jsonl")]


def test_a_hook_plugin_that_fails_stops_the_run_before_its_first_trial(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "-p", "double/broken-facts")

    message = "error: the facts about the samples cannot be had: ConnectionError: no route\n"
    assert (2, message) == (outcome.code, outcome.stderr)
    assert not (project.root / "results").exists()


def test_a_scoring_that_was_interrupted_shows(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")
    scores = project.run_directory() / "scores.jsonl"
    scores.write_text(scores.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")

    report = project.keval("report", "latest")
    completed = project.keval("score", "latest")

    assert (3, 0) == (report.code, completed.code)
    assert "1 scores are missing: scoring was interrupted; `keval score` completes it." in report.stdout
    assert "missing" not in completed.stdout


def test_a_hook_that_is_none_is_told_before_anything_runs(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "-p", "double/unknown-hook")

    assert 2 == outcome.code
    assert outcome.stderr.startswith("error: a hook plugin does not fit this version of keval: unknown hook")
    assert not (project.root / "results").exists()


def test_a_narrowed_run_is_scored_again_as_it_was_narrowed(project: Project) -> None:
    config = CONFIG.replace("{baseline: {}}", "{1: {}, second: {}, third: {}}") + "baseline: third\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml", "--condition", "1", "--condition", "second")

    outcome = project.keval("score", "latest", "--json")

    assert (0, ["1", "second"]) == (outcome.code, [arm["condition"] for arm in outcome.data["arms"]])
