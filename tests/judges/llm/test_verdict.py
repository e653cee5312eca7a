"""Reading replies: what is unambiguous, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval import Rubric, Score
from keval_judges.grader import read_verdict
from keval_judges.prompt import Sheet

SHEET = Sheet.of([Rubric("a", "?", {1: "No.", 5: "Yes."}), Rubric("b", "?", {0: "No.", 1: "Yes."})], answered=True)
B = {"reasoning": "so", "score": 0}


def reply(**changed: Any) -> str:
    return json.dumps({"a": {"reasoning": "well", "score": 5}, "b": B, "unverified_claims": ["x", " "], **changed})


def test_a_verdict_is_read() -> None:
    verdict = read_verdict(reply(), SHEET)

    assert {"a": Score(5.0, "well"), "b": Score(0.0, "so")} == verdict.scores
    assert ("x",) == verdict.claims
    assert {} == verdict.faults


WRAPS = [
    *("```json\n{}\n```", "```\n{}\n```\n", "  \n```JSON \n{}\n ```", "\n{}  \n", "`{}`", "```json {}```"),
    *("Here it is: {}", "```json\n{}\n```\nDone.", "Sure:\n```json\n{}\n```", "{}\n{}", "{}\n\nLet me know!"),
    *(
        "<think>\nA 1? {x}\n</think>\n\n{}",
        "I think it is a 1.\n</think>{}",
        "[{}]",
        '{"verdict": {}}',
        "**Verdict**\n{}",
    ),
    '{"thoughts": "a"}\n{}',
]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_verdict_is_read_whatever_stands_around_it(wrap: str) -> None:
    verdict = read_verdict(wrap.replace("{}", reply()), SHEET)

    assert ({}, [5.0, 0.0]) == (verdict.faults, [score.value for score in verdict.scores.values()])


@pytest.mark.parametrize("score", [5, 5.0, "5", " 5 "])
def test_a_level_is_read_however_it_is_written(score: object) -> None:
    assert Score(5.0, "well") == read_verdict(reply(a={"reasoning": "well", "score": score}), SHEET).scores["a"]


def test_the_only_rubric_may_be_without_its_key() -> None:
    sheet = Sheet.of([Rubric("a", "?", {1: "No.", 5: "Yes."})], answered=True)
    flat = json.dumps({"reasoning": "well", "score": 5, "unverified_claims": []})

    assert {"a": Score(5.0, "well")} == read_verdict(flat, sheet).scores
    assert {} == read_verdict(flat, SHEET).scores


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[]",
        "null",
        '"text"',
        "5 out of 5",
        f"The response says {reply()}, but: {reply(b={'reasoning': 'so', 'score': 1})}",
        f'{{"a": {{"reasoning": "It says "{reply()}".", "score": 1}}}}',
        f"{{as asked}} {reply()}",
        f"<think>{reply()}</think>",
        f"<think>{reply()}",
        reply()[:-5],
        "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
        reply().replace('"score": 5', '"score": 1, "score": 5'),
    ],
    ids=range(15),
)
def test_anything_else_is_no_verdict_about_anything(text: str) -> None:
    verdict = read_verdict(text, SHEET)

    assert {} == verdict.scores
    assert {"a", "b", "unverified_claims"} == verdict.faults.keys()
    assert verdict.claims is None


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (None, "there is no object with reasoning and score"),
        (5, "there is no object with reasoning and score"),
        ({}, "the score is no whole number but NoneType"),
        ({"reasoning": "x", "score": 4.5}, "the score is no whole number but float"),
        ({"reasoning": "x", "score": "5 of 5"}, "the score is no whole number but str"),
        ({"reasoning": "x", "score": True}, "the score is no whole number but bool"),
        ({"reasoning": "x", "score": [5]}, "the score is no whole number but list"),
        ({"reasoning": "x", "score": float("nan")}, "the score is no whole number but float"),
        ({"reasoning": "x", "score": 0}, "the score 0 is not one of the levels 1, 5"),
        ({"reasoning": "x", "score": 3}, "the score 3 is not one of the levels 1, 5"),
        ({"reasoning": "x", "score": -5}, "the score -5 is not one of the levels 1, 5"),
        ({"reasoning": "x", "score": 10**400}, "the score 100000000000 is not one of the levels 1, 5"),
        ({"score": 5}, "there is no reasoning"),
        ({"reasoning": 1, "score": 5}, "there is no reasoning"),
    ],
)
def test_a_rubric_at_fault_leaves_the_others_standing(entry: object, fault: str) -> None:
    verdict = read_verdict(reply(a=entry), SHEET)

    assert {"a": fault} == verdict.faults
    assert {"b": Score(0.0, "so")} == verdict.scores
    assert ("x",) == verdict.claims


@pytest.mark.parametrize("claims", [None, "one", [1], {"a": "b"}])
def test_claims_at_fault_leave_the_scores_standing(claims: object) -> None:
    verdict = read_verdict(reply(unverified_claims=claims), SHEET)

    assert {"unverified_claims": "it is no list of texts"} == verdict.faults
    assert {"a", "b"} == verdict.scores.keys()
    assert verdict.claims is None


def test_lone_surrogates_are_replaced_so_that_the_score_can_be_written() -> None:
    verdict = read_verdict(reply(a={"reasoning": "odd \ud800", "score": 1}, unverified_claims=["\udfff"]), SHEET)

    assert Score(1.0, "odd ?") == verdict.scores["a"]
    assert ("?",) == verdict.claims
