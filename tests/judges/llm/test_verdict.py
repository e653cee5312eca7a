"""Reading replies, strictly."""

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


@pytest.mark.parametrize("wrap", ["```json\n{}\n```", "```\n{}\n```\n", "  \n```JSON \n{}\n ```", "\n{}  \n"])
def test_a_verdict_may_stand_in_one_markdown_fence(wrap: str) -> None:
    assert {} == read_verdict(wrap.replace("{}", reply()), SHEET).faults


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[]",
        "null",
        '"text"',
        "5 out of 5",
        f"Here it is: {reply()}",
        f"```json\n{reply()}\n```\nDone.",
        f"Sure:\n```json\n{reply()}\n```",
        f"```json\n{reply()}\n```\n```json\n{reply()}\n```",
        f"{reply()}\n{reply()}",
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
        ({"reasoning": "x", "score": 5.0}, "the score is no whole number but float"),
        ({"reasoning": "x", "score": "5"}, "the score is no whole number but str"),
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
