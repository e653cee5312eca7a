"""Rubrics of claims in a run, as a user has them: planted answers, with the tool results that they were given by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("simulated_here")

QUESTIONS = [
    {
        "id": "oslo",
        "question": "What is the weather in Oslo?",
        "answer": "It is 17 °C in Oslo. The wind blows at 5 m/s. The humidity is 80 %.",
    },
    {"id": "bergen", "question": "What is the weather in Bergen?"},
]
ANSWERS = [
    {
        "id": "oslo",
        "response": "It is 17 °C in Oslo. The wind blows at 9 m/s. The humidity is 80 %. Sunrise is at 06:12. "
        "The Munch Museum has 1150 paintings.",
        "tool_calls": [
            {"name": "get_weather", "arguments": {"city": "Oslo"}, "result": "17 °C, humidity 80 %"},
            {"name": "get_sun", "arguments": {"city": "Oslo"}, "result": "sunrise 06:12, sunset 21:40"},
        ],
    },
    {
        "id": "bergen",
        "response": "It is 11 °C in Bergen. The wind blows at 3 m/s.",
        "tool_calls": [{"name": "get_weather", "arguments": {"city": "Bergen"}, "result": "11 °C, light rain"}],
    },
]
GOLDEN = "There is no way to recover a lost passphrase."
CONFIG = """
    name: claims
    dataset: {path: questions.jsonl}
    agents: {old: {type: recorded, path: old.jsonl}}
    judge: {model: simulated/judge}
    rubrics: [factual_adherence, grounded, uncontradicted, coverage]
"""
VALUES = {
    ("oslo", "grounded"): 3 / 5,
    ("oslo", "uncontradicted"): 4 / 5,
    ("oslo", "coverage"): 2 / 3,
    ("bergen", "grounded"): 1 / 2,
    ("bergen", "uncontradicted"): 1.0,
    ("bergen", "coverage"): None,
}


@pytest.fixture
def asked(project: Project) -> Project:
    """A run of the planted answers, recorded."""
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl="".join(f"{json.dumps(each)}\n" for each in QUESTIONS),
        old_jsonl="".join(f"{json.dumps(each)}\n" for each in ANSWERS),
    )
    outcome = project.run("eval.yaml", "--record")
    assert 0 == outcome.code, outcome.stderr
    return project


def test_the_simulated_judge_names_the_words_that_cover_a_golden_claim(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl=json.dumps({"id": "lost", "question": "Can it be recovered?", "answer": GOLDEN}) + "\n",
        old_jsonl=json.dumps({"id": "lost", "response": f"Based on what I looked up: {GOLDEN}"}) + "\n",
    )

    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    assert [1.0] == [each["value"] for each in project.lines("scores.jsonl") if each["metric"] == "coverage"]


def found(lines: list[dict[str, Any]]) -> dict[tuple[str, str], float | None]:
    return {(each["sample"], each["metric"]): each["value"] for each in lines if each["metric"] != "factual_adherence"}


def judged(lines: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    said = ("value", "reason", "details", "judgement")
    return {(each["sample"], each["metric"]): [each[name] for name in said] for each in lines}


def test_planted_claims_are_told_apart(asked: Project) -> None:
    lines = asked.lines("scores.jsonl")

    assert pytest.approx(VALUES) == found(lines)
    (oslo,) = (each for each in lines if (each["sample"], each["metric"]) == ("oslo", "grounded"))
    assert [
        ("It is 17 °C in Oslo.", "supported", "supported", ["get_weather #1"]),
        ("The wind blows at 9 m/s.", "contradicted", "silent", []),
        ("The humidity is 80 %.", "supported", "supported", ["get_weather #1"]),
        ("Sunrise is at 06:12.", "silent", "supported", ["get_sun #2"]),
        ("The Munch Museum has 1150 paintings.", "silent", "silent", []),
    ] == [(each["text"], each["golden"], each["results"], each["sources"]) for each in oslo["details"]["claims"]]
    calls = {each["sample"]: each["judgement"]["model_calls"] for each in lines}
    assert {"oslo": 2, "bergen": 1} == calls


def test_reports_say_where_unverified_claims_are(asked: Project) -> None:
    run, page = str(asked.run_directory()), asked.root / "report.html"

    shown = asked.keval("show", run, "--sample", "oslo").stdout
    explained = asked.keval("report", run, "--explain").stdout
    asked.keval("report", run, "--html", str(page))

    assert "read 'Sunrise is at 06:12': grounded in get_sun #2, good" in shown
    assert "read 'The wind blows at 9 m/s': contradicted by the golden answer, bad" in shown
    assert "unverified claim, according to judge: The Munch Museum has 1150 paintings.\n" in shown
    assert "  oslo (old baseline): The Munch Museum has 1150 paintings.\n" in explained
    assert "  oslo (old baseline): Sunrise" not in explained
    assert "claims beyond the golden answers that are in tool results: get_sun 1\n" in explained
    assert '>Sunrise is at 06:12.</td><td class="foreign">get_sun #2</td>' in page.read_text(encoding="utf-8")


def test_a_replay_gives_the_same_scores_and_a_resumed_run_those_that_it_lacks(asked: Project) -> None:
    recorded, whole = asked.run_directory(), asked.lines("scores.jsonl")
    kept = [line for line in whole if line["metric"] not in ("uncontradicted", "coverage")]
    (recorded / "scores.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")

    replayed = asked.keval("run", "--replay", str(recorded), "-o", str(asked.root / "again"))
    resumed = asked.keval("resume", str(recorded))

    assert (0, 0) == (replayed.code, resumed.code), f"{replayed.stderr}{resumed.stderr}"
    (again,) = asked.root.glob("again/*/*/scores.jsonl")
    assert judged(whole) == judged([json.loads(line) for line in again.read_text(encoding="utf-8").splitlines()])
    assert pytest.approx(VALUES) == found(asked.lines("scores.jsonl"))


def test_a_rubric_that_no_judge_grades_by_is_told_of_at_its_place(asked: Project) -> None:
    asked.write(plain_yaml=CONFIG.replace("{model: simulated/judge}", "{type: reader}"))

    told = asked.keval("validate", str(asked.root / "plain.yaml")).stderr

    assert "plain.yaml:5:30: no judge grades by grounded, whose kind is claims; add one that does to `judges:`" in told


def test_a_share_without_claims_is_refused_at_its_place(asked: Project) -> None:
    own = '{mine: {instructions: "?", levels: {0: None., 1: All.}, kind: claims}}'
    asked.write(own_yaml=CONFIG.replace("factual_adherence", own))

    told = asked.keval("validate", str(asked.root / "own.yaml"))

    assert 2 == told.code
    assert (
        "own.yaml:5:12: 'share' must stand beside `kind: claims`: grounded, uncontradicted, covered or expected"
        in told.stderr
    )
