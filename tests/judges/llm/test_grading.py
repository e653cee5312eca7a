"""Judgements through a real gateway, over both SDKs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval import Rubric, Usage
from keval.plugin import JudgeContext
from keval_gateway import ChatReply, ModelFault
from tests.judges.llm.conftest import GOOD, GRADED, RUBRICS, TRIAL, Grade, said

BAD: list[Any] = [
    "I would say 3.",
    '{"accuracy": {"reasoning": "x", "score": 3',
    {},
    {**GOOD, "accuracy": {"reasoning": "x", "score": 4}, "acme_tone": {"reasoning": "x", "score": "ten"}},
]

both = pytest.mark.parametrize("vendor", ["openai", "anthropic"])


@both
def test_one_request_grades_by_all_rubrics(grade: Grade, vendor: str) -> None:
    outcome = grade([GOOD], vendor)

    assert GRADED == outcome.scores
    assert 1 == len(outcome.requests)
    assert ("It is in Bavaria.",) == outcome.judgement.unverified_claims
    assert () == outcome.judgement.rejected


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
@both
def test_a_reply_that_is_no_verdict_is_asked_for_once_more(grade: Grade, vendor: str, bad: Any) -> None:
    outcome = grade([bad, GOOD], vendor)

    assert GRADED == outcome.scores
    assert 2 == len(outcome.requests)
    assert 1 == len(outcome.judgement.rejected)


def test_the_second_request_says_what_was_wrong_with_the_first_reply(grade: Grade) -> None:
    outcome = grade([{**GOOD, "accuracy": {"reasoning": "I say: always 5!", "score": 9}}, GOOD])

    first, second = (request.messages[-1].text for request in outcome.requests)
    assert second.startswith(first)
    assert "- accuracy: the score 9 is not one of the levels 1, 2, 3\n" in second
    assert "always 5" not in second
    assert outcome.requests[0].system == outcome.requests[1].system


@both
def test_the_arguments_of_a_rejected_call_are_kept_as_json(grade: Grade, vendor: str) -> None:
    outcome = grade([{"accuracy": "groß"}, GOOD], vendor)

    assert ('{"accuracy": "groß"}',) == outcome.judgement.rejected


def test_a_score_stands_though_another_could_not_be_read(grade: Grade) -> None:
    broken_tone = {**GOOD, "acme_tone": {"reasoning": "warm", "score": 7}}
    other = {**GOOD, "accuracy": {"reasoning": "On second thoughts.", "score": 1}, "unverified_claims": []}

    outcome = grade([broken_tone, other])

    assert GRADED == outcome.scores
    assert ("It is in Bavaria.",) == outcome.judgement.unverified_claims


def test_only_the_rubric_that_failed_twice_is_unscored(grade: Grade) -> None:
    broken_tone = {**GOOD, "acme_tone": {"reasoning": "warm", "score": 7}}

    outcome = grade([broken_tone, broken_tone])

    assert {"accuracy": GRADED["accuracy"]} == outcome.scores
    (error,) = outcome.errors.values()
    assert "two replies of the judge could not be used: the score 7 is not one of the levels 0, 10" == str(error)


def test_the_scores_of_the_first_reply_stand_when_the_second_request_fails(grade: Grade) -> None:
    broken_tone = {**GOOD, "acme_tone": {"reasoning": "warm", "score": 7}}

    outcome = grade([broken_tone, ModelFault(429, "not now", 7.0)])

    assert {"accuracy": GRADED["accuracy"]} == outcome.scores
    error = outcome.errors["acme/tone"]
    assert ("score", "rate_limit") == (error.stage, error.kind)
    assert "the score 7 is not one of the levels 0, 10; asked once more, it failed: " in str(error)
    assert "not now" in str(error)
    assert (1, 1) == (outcome.judgement.model_calls, len(outcome.judgement.rejected))
    assert ("It is in Bavaria.",) == outcome.judgement.unverified_claims


def test_all_scores_stand_when_claims_are_asked_for_once_more_in_vain(grade: Grade) -> None:
    without = {key: value for key, value in GOOD.items() if key != "unverified_claims"}

    outcome = grade([without, ModelFault(500, "not now")])

    assert (GRADED, None) == (outcome.graded, outcome.error)
    assert outcome.judgement.unverified_claims is None


def test_claims_that_are_missing_twice_cost_no_score(grade: Grade) -> None:
    without = {key: value for key, value in GOOD.items() if key != "unverified_claims"}

    outcome = grade([without, without])

    assert GRADED == outcome.scores
    assert outcome.judgement.unverified_claims is None
    assert 2 == len(outcome.judgement.rejected)


@both
def test_the_usage_of_rejected_replies_counts(grade: Grade, vendor: str) -> None:
    usage = Usage(100, 20, 40, 0)

    def respond(request: Any) -> ChatReply:
        reply = "no verdict" if "could not be used" not in request.messages[-1].text else GOOD
        return attrs.evolve(said(request, reply), usage=usage)

    judgement = grade(respond, vendor).judgement

    assert 2 == judgement.model_calls
    assert (200, 40, 80) == (
        judgement.usage.input_tokens,
        judgement.usage.output_tokens,
        judgement.usage.cached_tokens,
    )


def test_a_sample_without_golden_answer_is_graded_without_one(grade: Grade) -> None:
    trial = attrs.evolve(TRIAL, sample=attrs.evolve(TRIAL.sample, answer=None))

    outcome = grade([GOOD], trial=trial, rubrics=RUBRICS[1:])

    assert {"acme/tone": GRADED["acme/tone"]} == outcome.scores
    assert "golden_answer" not in outcome.requests[0].messages[-1].text
    assert "There is no golden answer." in outcome.requests[0].system


def test_rubrics_of_one_name_that_say_different_things_are_kept_apart(grade: Grade) -> None:
    lenient, strict = (Rubric("tone", text, {1: "No.", 2: "Yes."}) for text in ("Is it kind?", "Is it kind to all?"))
    verdict = {"tone": {"reasoning": "so", "score": 2}, "unverified_claims": []}

    for rubric in (lenient, strict, lenient):
        outcome = grade([verdict], rubrics=[rubric])

        assert f"## tone\n\n{rubric.instructions}\n" in outcome.requests[0].system


@both
def test_the_headers_for_the_gateway_go_along(grade: Grade, vendor: str) -> None:
    outcome = grade([GOOD], vendor, judging=JudgeContext(model_headers={"x-keval-repetition": "3"}))

    assert 3 == outcome.requests[0].repetition
