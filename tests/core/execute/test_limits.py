"""Limits of a run: how many trials may fail, and what it may use up."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from keval.plan.plan import sample_order
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
execution: {max_concurrent: 4, retry: {max_attempts: 2, initial_backoff_seconds: 0}}
"""
USAGE = {"input_tokens": 60, "output_tokens": 40}


def dataset(count: int, **script: object) -> str:
    return "".join(
        json.dumps({"id": f"q{n}", "question": "How?", "answer": "So.", **script}) + "\n" for n in range(count)
    )


def asked(project: Project) -> int:
    return len(project.lines("trials.jsonl"))


@pytest.mark.parametrize(("limit", "most"), [("5", 5), ("10%", 4), ("0", 0)])
def test_no_other_trial_begins_when_more_failed_than_may(project: Project, limit: str, most: int) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(40, fail="it is down"))

    outcome = project.keval("run", "eval.yaml", "--max-failures", limit)

    # Those in flight finish.
    assert most + 1 <= asked(project) <= most + 4
    assert 3 == outcome.code
    assert f"more than the {most} of max_failures" in outcome.stdout
    assert f"{40 - asked(project)} trials were not run" in outcome.stdout


def test_a_failed_trial_counts_before_its_content_is_written(project: Project) -> None:
    execution = "execution: {max_concurrent: 1, max_recorded_bytes: 100, keep_large_results: true, retry"
    calls = [{"name": "look", "result": "x" * 1000}]
    project.write(eval_yaml=CONFIG.replace("execution: {max_concurrent: 4, retry", execution))
    project.write(questions_jsonl=dataset(4, fail="it is down", calls=calls))

    project.keval("run", "eval.yaml", "--max-failures", "0")

    assert (1, 1) == (asked(project), len([*project.run_directory().glob("blobs/*")]))


def test_as_many_may_fail_as_the_limit_says(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("{max_c", "{max_failures: 40, max_c"), questions_jsonl=dataset(40, fail="x"))

    outcome = project.keval("run", "eval.yaml")

    assert (3, 40, None) == (outcome.code, asked(project), project.read("summary.json")["stopped"])


@pytest.mark.parametrize("limit", ["-1", "many", "101%", "0.5"])
def test_a_limit_that_is_none_is_refused(project: Project, limit: str) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(1))

    outcome = project.keval("run", "eval.yaml", f"--max-failures={limit}")

    assert 2 == outcome.code
    assert "must be a number of trials, or a share of them such as 10%" in outcome.stderr


def test_a_run_that_has_used_up_its_trials_goes_on_with_more(project: Project) -> None:
    project.write(eval_yaml=f"{CONFIG}\nbudget: {{trials: 7, tokens: 99999}}", questions_jsonl=dataset(20))

    first = project.keval("run", "eval.yaml")
    again = project.keval("resume", "latest")
    count = asked(project)
    more = project.keval("resume", "latest", "--budget", "trials=20")

    assert (3, 3, 7) == (first.code, again.code, count)
    assert "13 trials were not run: budget used: 7 of 7 trials (--budget sets another)." in again.stdout
    assert (0, 20, None) == (more.code, asked(project), project.read("summary.json")["stopped"])


def test_tokens_are_reserved_for_what_is_in_flight(project: Project) -> None:
    """Trials cost 100 tokens. Nothing is known of the first four, and then the sum never exceeds the budget."""
    project.write(eval_yaml=f"{CONFIG}\nbudget: {{tokens: 1050}}", questions_jsonl=dataset(40, usage=USAGE))

    outcome = project.keval("run", "eval.yaml")

    assert (3, 10) == (outcome.code, asked(project))
    assert "30 trials were not run: budget used: 1,000 of 1,050 tokens (--budget sets another)." in outcome.stdout


def test_discarded_attempts_count_and_what_is_too_much_is_said(project: Project) -> None:
    # Every attempt fails, after it cost 100 tokens. Nothing is known of the first trial, which begins alone.
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(9, usage=USAGE, busy=9))

    outcome = project.keval("run", "eval.yaml", "--budget", "tokens=150")

    assert 2 == sum(1 + len(trial["attempts"]) for trial in project.lines("trials.jsonl"))
    assert "budget used: 200 of 150 tokens, 50 too many" in outcome.stdout
    assert 3 == project.keval("resume", "latest", "--retry-failed").code
    assert 0 == asked(project)  # what was set aside has cost as much


def test_a_model_that_does_not_tell_its_tokens_is_taken_to_cost_most(project: Project) -> None:
    names = [f"q{n}" for n in range(30)]
    told = {name: {"usage": USAGE} for name in sample_order(names, 0, 1)[:5]}
    questions = "".join(json.dumps({"id": name, "question": "How?", **told.get(name, {})}) + "\n" for name in names)
    project.write(eval_yaml=CONFIG.replace("max_concurrent: 4", "max_concurrent: 1"), questions_jsonl=questions)

    outcome = project.keval("run", "eval.yaml", "--budget", "tokens=1000")

    assert 10 == asked(project)
    assert "1,000 of 1,000 tokens, guessed for 5 trials or judgements" in " ".join(outcome.stdout.split())


def test_judgements_cost_tokens_too_and_what_needs_none_is_scored(project: Project) -> None:
    judged = f"{CONFIG}\njudges: {{reader: {{}}}}\nrubrics: [completeness]\n"
    project.write(
        eval_yaml=judged,
        questions_jsonl=dataset(10, usage=USAGE, level=3),
    )

    outcome = project.keval("run", "eval.yaml", "--budget", "tokens=1060")

    kinds = Counter((line["metric"], (line["failure"] or {}).get("kind")) for line in project.lines("scores.jsonl"))
    assert {("double/length", None): 10, ("completeness", None): 5, ("completeness", "budget"): 5} == kinds
    assert "budget used: 1,060 of 1,060 tokens" in outcome.stdout
    assert 0 == project.keval("score", "latest", "--missing", "--budget", "tokens=3000").code
    assert 10 == sum(line["metric"] == "completeness" and line["value"] == 3 for line in project.lines("scores.jsonl"))


def test_a_plan_tells_its_budget_and_a_wrong_one_is_refused(project: Project) -> None:
    project.write(eval_yaml=f"{CONFIG}\nbudget: {{tokens: 1000}}", questions_jsonl=dataset(2))

    flags = ["--budget", "trials=5", "--budget", "usd=1_000.50"]
    assert "budget     1,000 tokens, 5 trials, $1,000" in project.keval("run", "eval.yaml", "--dry-run", *flags).stdout
    assert 2 == project.keval("run", "eval.yaml", "--budget", "dollars=5").code
    for wrong in ("tokens=few", "tokens=1.5", "tokens=__", "usd=-1", "usd=inf", "usd="):
        assert 2 == project.keval("run", "eval.yaml", "--budget", wrong).code
