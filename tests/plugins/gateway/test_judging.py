"""The simulated model as a judge: finding what to judge, judging it, and filling any verdict's schema."""

from __future__ import annotations

from random import Random
from statistics import mean
from typing import Any

import jsonschema
import orjson
import pytest

from keval_gateway import ChatMessage, ChatRequest
from keval_gateway.simulate import SimulatedModel
from keval_gateway.simulate.judging import judge
from keval_gateway.simulate.sections import Sections, sections_of

QUESTION = "How warm is it in Rome?"
GOLDEN = "It is 12.5 °C in Rome with few clouds."
GOOD = "It is currently 12.5°C in Rome, with few clouds."
WRONG = "It is currently 29°C in Rome, with heavy snow."
EVASIVE = "I'm sorry, I can't look that up. I don't have access to live data."
EXTRA = "It is currently 12.5°C in Rome, with few clouds. Trains to Florence take 90 minutes."

PROMPTS = {
    "tags": "<question>{q}</question>\n<golden_answer>\n{g}\n</golden_answer>\n<response>{r}</response>",
    "headings": "# Task\nGrade it.\n\n## Question\n{q}\n\n## Golden answer\n{g}\n\n## Agent response\n{r}",
    "labels": "Question: {q}\nReference answer: {g}\nAssistant's answer: {r}",
    "bold": "**Question:** {q}\n\n**Expected answer:**\n{g}\n\n**Response:**\n{r}",
    "fences": "User query:\n```\n{q}\n```\nGround truth:\n```\n{g}\n```\nCandidate output:\n```text\n{r}\n```",
    "brackets": "[Question]\n{q}\n\n[Reference Answer]\n{g}\n\n[Response]\n{r}",
    "rules": "=== Question ===\n{q}\n=== Golden ===\n{g}\n=== Response ===\n{r}",
}


@pytest.mark.parametrize("form", PROMPTS)
def test_sections_are_found_in_the_usual_forms(form: str) -> None:
    prompt = PROMPTS[form].format(q=QUESTION, g=GOLDEN, r=GOOD)

    assert sections_of(prompt) == Sections(QUESTION, GOLDEN, GOOD)


def test_a_response_that_holds_labels_of_its_own_is_kept_whole_in_tags() -> None:
    response = "Answer: it is fine.\n## Question\nNone."

    found = sections_of(f"<golden>{GOLDEN}</golden><response>{response}</response>")

    assert found.response == response


@pytest.mark.parametrize("prompt", ["What's the weather in Rome?", "", "Note: take care.\nTime: now."])
def test_other_prompts_have_nothing_to_judge(prompt: str) -> None:
    assert not sections_of(prompt).judging


def verdicts(response: str) -> list[Any]:
    return [judge(Sections(QUESTION, GOLDEN, response), Random(seed)) for seed in range(40)]


def test_good_answers_are_rated_above_wrong_and_evasive_ones() -> None:
    good, wrong, evasive = verdicts(GOOD), verdicts(WRONG), verdicts(EVASIVE)

    for worse in (wrong, evasive):
        assert mean(v.factual for v in good) > mean(v.factual for v in worse) + 0.25
        assert mean(v.complete for v in good) > mean(v.complete for v in worse) + 0.25
    assert mean(v.clear for v in good) > mean(v.clear for v in evasive)
    assert "contradicts" in wrong[0].reason
    assert "declines" in evasive[0].reason


def test_what_is_in_neither_golden_answer_nor_question_is_an_unverified_claim() -> None:
    claims = " ".join(verdicts(EXTRA)[0].unverified)

    assert "Florence" in claims
    assert "90" in claims
    assert "Rome" not in claims
    assert "12.5" not in claims
    assert verdicts(GOOD)[0].unverified == ()


def graded(schema: dict[str, Any], response: str, repetition: int = 1) -> Any:
    prompt = PROMPTS["tags"].format(q=QUESTION, g=GOLDEN, r=response)
    request = ChatRequest(
        "anthropic", "m", (ChatMessage("user", prompt),), "You judge.", response_schema=schema, repetition=repetition
    )
    value = orjson.loads(SimulatedModel()(request).text)
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


SCORE = {"type": "integer", "minimum": 1, "maximum": 5}
RATED = {
    "type": "object",
    "properties": {"score": SCORE, "reasoning": {"type": "string"}},
    "required": ["score", "reasoning"],
    "additionalProperties": False,
}
NESTED = {
    "type": "object",
    "properties": {
        "factual_adherence": RATED,
        "completeness": RATED,
        "helpfulness_and_clarity": RATED,
        "unverified_claims": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["factual_adherence", "completeness", "helpfulness_and_clarity", "unverified_claims"],
    "additionalProperties": False,
}


def test_a_nested_verdict_has_a_score_and_a_reason_per_rubric() -> None:
    good = [graded(NESTED, GOOD, repetition) for repetition in range(10)]
    wrong = [graded(NESTED, WRONG, repetition) for repetition in range(10)]

    for rubric in ("factual_adherence", "completeness"):
        assert mean(v[rubric]["score"] for v in good) >= mean(v[rubric]["score"] for v in wrong) + 1
    assert good[0]["unverified_claims"] == []
    assert wrong[0]["unverified_claims"]
    assert "facts of the golden answer" in good[0]["completeness"]["reasoning"]


@pytest.mark.parametrize(
    ("schema", "good", "wrong"),
    [
        ({"type": "object", "properties": {"passed": {"type": "boolean"}}, "required": ["passed"]}, True, False),
        ({"type": "object", "properties": {"v": {"enum": ["pass", "fail"]}}, "required": ["v"]}, "pass", "fail"),
    ],
)
def test_a_verdict_in_words_follows_the_measure(schema: dict[str, Any], good: Any, wrong: Any) -> None:
    (name,) = schema["properties"]

    assert [graded(schema, GOOD, n)[name] for n in range(5)].count(good) >= 4
    assert [graded(schema, WRONG, n)[name] for n in range(5)].count(wrong) >= 4


def test_levels_given_as_an_enum_of_numbers_are_ranked() -> None:
    schema = {"type": "object", "properties": {"score": {"enum": [5, 4, 3, 2, 1]}}, "required": ["score"]}

    assert mean(graded(schema, GOOD, n)["score"] for n in range(8)) > 3.5
    assert mean(graded(schema, WRONG, n)["score"] for n in range(8)) < 3.5


def test_a_judge_is_repeated_by_its_seed_and_scatters_over_repetitions() -> None:
    first = [graded(NESTED, GOOD, n) for n in range(12)]

    assert first == [graded(NESTED, GOOD, n) for n in range(12)]
    assert len({orjson.dumps(value) for value in first}) > 1
