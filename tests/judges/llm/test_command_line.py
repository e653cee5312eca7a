"""Judges in a run, as a user has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("simulated_here")

RUBRICS = ["factual_adherence", "completeness", "helpfulness_and_clarity"]
QUESTION = {"id": "port", "question": "Which port does Tarn listen on?", "answer": "Tarn listens on port 7443."}


def ran(project: Project, judges: str, response: str = "Tarn listens on port 7443.", **env: str) -> tuple[int, Any]:
    config = "agents: {old: {type: recorded, path: old.jsonl}}\ndataset: {path: questions.jsonl}\n"
    retry = "execution: {retry: {max_attempts: 2, max_request_attempts: 1, initial_backoff_seconds: 0}}\n"
    project.write(
        eval_yaml=f"{config}judges: {judges}\nrubrics: [{', '.join(RUBRICS)}]\n{retry}",
        questions_jsonl=json.dumps(QUESTION) + "\n",
        old_jsonl=json.dumps({"id": "port", "response": response}) + "\n",
    )
    outcome = project.keval("run", "eval.yaml", env=env)
    return outcome.code, {(line["judge"], line["metric"]): line for line in project.lines("scores.jsonl")}


def test_both_judges_score_a_run_by_every_rubric(project: Project) -> None:
    code, scores = ran(project, "{openai: {model: simulated/judge}, anthropic: {model: simulated/judge}}")

    assert 0 == code
    assert {(judge, rubric) for judge in ("openai", "anthropic") for rubric in RUBRICS} == scores.keys()
    assert {5.0} == {scores[judge, "completeness"]["value"] for judge in ("openai", "anthropic")}
    assert {1} == {line["judgement"]["model_calls"] for line in scores.values()}
    assert all(line["judgement"]["usage"]["input_tokens"] > 500 for line in scores.values())
    assert all(line["reason"] for line in scores.values())


def test_a_wrong_answer_is_scored_low_and_its_claims_are_flagged(project: Project) -> None:
    _, scores = ran(project, "{openai: {model: simulated/judge}}", "Tarn listens on port 8080, says Miriam Oakes.")

    assert 2 >= scores["openai", "factual_adherence"]["value"]
    assert scores["openai", "factual_adherence"]["judgement"]["unverified_claims"]


def test_a_judge_that_cannot_be_reached_leaves_answers_unscored(project: Project) -> None:
    # No provider is asked for an endpoint of one's own, so none need be installed, nor its key be set.
    judge = "{openai: {model: acme/local, base_url: 'http://127.0.0.1:1/v1', api_key: '${ACME_KEY}'}}"

    code, scores = ran(project, judge, ACME_KEY="acme-s3cret")

    assert 3 == code
    assert {None} == {line["value"] for line in scores.values()}
    assert {"connection"} == {line["failure"]["kind"] for line in scores.values()}
    assert {1} == {len(line["judgement"]["attempts"]) for line in scores.values()}


@pytest.mark.parametrize("name", ["manifest.json", "scores.jsonl"])
def test_a_judges_key_reaches_no_file(project: Project, name: str) -> None:
    judge = "{openai: {model: openai/local, base_url: 'http://127.0.0.1:1/v1', api_key: '${ACME_KEY}'}}"

    ran(project, judge, OPENAI_API_KEY="of-the-provider", ACME_KEY="acme-s3cret")

    written = (project.run_directory() / name).read_text(encoding="utf-8")
    assert written
    assert [] == [key for key in ("acme-s3cret", "of-the-provider") if key in written]
