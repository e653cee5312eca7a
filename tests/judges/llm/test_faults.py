"""Endpoints that refuse, fail, hang or answer oddly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from keval import Usage
from keval.plugin import (
    Endpoint,
    JudgeContext,
    Model,
    ModelError,
    TrialError,
    Wire,
)
from keval_gateway import ModelFault
from keval_testing import check_judge, says
from keval_testing.judge_kit import OTHER_ANSWER
from keval_testing.scripted_model import ReceivedRequest, ScriptedReply
from tests.judges.llm.conftest import GOOD, GRADED, KINDS, RUBRICS, TRIAL, Grade, Staged

VENDORS = ["openai", "anthropic"]
BOTH = pytest.mark.parametrize("vendor", VENDORS)


@BOTH
def test_judges_keep_the_rules(vendor: str) -> None:
    def judgement(request: ReceivedRequest, level: int) -> ScriptedReply:
        grade = {"reasoning": "As it fits.", "score": level}
        return says(json.dumps({"accuracy": grade, "testing_tone": grade, "unverified_claims": []}))

    check_judge(vendor, judgement=judgement)


def test_pairwise_keeps_the_rules() -> None:
    def judgement(request: ReceivedRequest, level: int) -> ScriptedReply:
        first, second = (request.texts[-1].find(f"<{place}_response") for place in ("first", "second"))
        ours_first = not first < request.texts[-1].find(OTHER_ANSWER) < second
        words = {0: "tie", 1: "first" if ours_first else "second", -1: "second" if ours_first else "first"}
        grade = {"reasoning": "As it fits.", "preference": words.get(level, "neither")}
        return says(json.dumps({"better": grade, "testing_nicer": grade}))

    check_judge("pairwise", judgement=judgement)


@BOTH
def test_an_error_of_the_endpoint_is_raised_for_keval_to_retry(grade: Grade, vendor: str) -> None:
    outcome = grade([ModelFault(429, "not now", 7.0)], vendor)

    error = outcome.error
    assert isinstance(error, ModelError)
    assert (429, 7.0, True, 1) == (error.status, error.retry_after, error.retryable, len(outcome.requests))
    assert "not now" in str(error)
    assert outcome.judgement.model_calls is None


@BOTH
def test_what_a_rejected_reply_took_is_kept_when_the_next_request_fails(grade: Grade, vendor: str) -> None:
    outcome = grade(["no verdict", ModelFault(429, "not now")], vendor)

    assert isinstance(outcome.error, ModelError)
    assert (1, ("no verdict",)) == (outcome.judgement.model_calls, outcome.judgement.rejected)
    assert outcome.judgement.usage.output_tokens


ODD: list[Any] = [
    {},
    {"error": {"message": "overloaded"}},
    {"choices": [], "content": None},
    {"choices": [{"message": None}], "content": [{"type": "tool_use"}]},
    {"choices": [{"message": ["a"]}], "content": 5},
]


@BOTH
@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_what_is_no_reply_can_be_tried_again(grade_raw: Grade, vendor: str, body: object) -> None:
    outcome = grade_raw(vendor, body)

    error = outcome.error
    assert isinstance(error, TrialError)
    assert ("model", "bad_reply", True) == (error.stage, error.kind, error.retryable)


def chat(content: object = json.dumps(GOOD), finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content, **message}, "finish_reason": finish}]}


def anthropic(*blocks: dict[str, Any], stop: str = "tool_use", **rest: Any) -> dict[str, Any]:
    return {"content": [*blocks], "stop_reason": stop, **rest}


USE = {"type": "tool_use", "id": "1", "name": "grade", "input": GOOD}
TEXT = {"type": "text", "text": json.dumps(GOOD)}
CALL = {"function": {"name": "grade", "arguments": json.dumps(GOOD)}}
BAD = {**GOOD, "accuracy": {"reasoning": "x", "score": 1}}
OTHER = {"function": {"name": "grade", "arguments": json.dumps(BAD)}}
PARSED = {"function": {"name": "grade", "arguments": GOOD}}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
HALVES = [{"type": "text", "text": half} for half in (TEXT["text"][:20], TEXT["text"][20:])]


@pytest.mark.parametrize(
    ("vendor", "body", "failure", "kept"),
    [
        ("openai", chat(None, refusal="I can't."), ("refused", "the judge refused to grade"), "I can't."),
        ("openai", chat(finish="length"), ("cut_off", "it was cut off: the judge reached its limit"), json.dumps(GOOD)),
        (
            "openai",
            chat(finish="content_filter"),
            ("refused", "it was cut off by the endpoint's content filter"),
            json.dumps(GOOD),
        ),
        ("openai", chat(None), ("bad_reply", "it is empty"), ""),
        (
            "openai",
            chat(None, tool_calls=[CALL, OTHER]),
            ("bad_reply", "it holds 2 objects"),
            f"{json.dumps(GOOD)}\n{json.dumps(BAD)}",
        ),
        ("anthropic", anthropic(TEXT, stop="refusal"), ("refused", "the judge refused to grade"), json.dumps(GOOD)),
        (
            "anthropic",
            anthropic(USE, stop="max_tokens"),
            ("cut_off", "it was cut off: the judge reached"),
            json.dumps(GOOD),
        ),
        (
            "anthropic",
            anthropic(USE, stop="model_context_window_exceeded"),
            ("cut_off", "it was cut off"),
            json.dumps(GOOD),
        ),
        ("anthropic", anthropic(stop="end_turn"), ("bad_reply", "it is empty"), ""),
        (
            "anthropic",
            anthropic(USE, {**USE, "input": BAD}),
            ("bad_reply", "it holds 2 objects"),
            f"{json.dumps(GOOD)}\n{json.dumps(BAD)}",
        ),
    ],
)
def test_a_reply_that_the_api_itself_calls_none_is_no_verdict(
    grade_raw: Grade, vendor: str, body: object, failure: tuple[str, str], kept: str
) -> None:
    outcome = grade_raw(vendor, body, body)

    assert outcome.error is None
    assert {"accuracy", "acme/tone"} == outcome.errors.keys()
    kind, fault = failure
    assert all(fault in str(error) for error in outcome.errors.values())
    assert {kind} == {error.kind for error in outcome.errors.values()}
    assert (kept, kept) == outcome.judgement.rejected


@pytest.mark.parametrize(
    ("vendor", "body"),
    [
        ("openai", chat()),
        ("openai", chat(tool_calls=[])),
        ("openai", chat(None, finish="tool_calls", tool_calls=[CALL])),
        ("openai", chat(None, finish="tool_calls", tool_calls=[PARSED])),
        ("openai", chat([THOUGHT, TEXT])),
        ("openai", chat(HALVES)),
        ("openai", {**chat(), "usage": {"prompt_tokens": "many", "completion_tokens": None}}),
        ("anthropic", anthropic(USE)),
        ("anthropic", anthropic({"type": "thinking", "thinking": "…"}, TEXT, stop="end_turn")),
        ("anthropic", anthropic({"type": "text", "text": "Let me see."}, USE)),
    ],
    ids=range(10),
)
def test_a_reply_that_leaves_out_what_it_may_is_read(grade_raw: Grade, vendor: str, body: object) -> None:
    outcome = grade_raw(vendor, body)

    assert GRADED == outcome.scores
    assert Usage() == outcome.judgement.usage


@pytest.mark.parametrize(
    "message",
    [
        {"content": ["a"]},
        {"content": {"text": "a"}},
        {"content": [{"type": "text", "text": 5}]},
        {"content": None, "tool_calls": [{"function": {"arguments": 5}}]},
        {"content": None, "tool_calls": ["grade"]},
    ],
    ids=range(5),
)
def test_a_reply_of_another_form_is_no_verdict_and_its_cost_is_kept(grade_raw: Grade, message: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}

    outcome = grade_raw("openai", {"choices": [{"message": message}], "usage": usage}, {**chat(), "usage": usage})

    assert GRADED == outcome.scores
    assert (2, Usage(20, 10)) == (outcome.judgement.model_calls, outcome.judgement.usage)
    assert [message] == [json.loads(reply) for reply in outcome.judgement.rejected]


def test_lone_surrogates_in_a_reply_can_be_written(grade_raw: Grade) -> None:
    outcome = grade_raw("openai", json.dumps(chat("\ud800")), json.dumps(chat("\udfff")))

    assert ("?", "?") == outcome.judgement.rejected


@BOTH
def test_a_judge_can_be_closed_twice_and_before_it_began(runner: asyncio.Runner, staged: Staged, vendor: str) -> None:
    async def scenario() -> Any:
        async with staged([GOOD, GOOD], vendor) as scene:
            await scene.judge.aclose()
            before = await scene.judge.grade(TRIAL, RUBRICS, JudgeContext())
            await scene.judge.aclose()
            await scene.judge.aclose()
            return before, await scene.judge.grade(TRIAL, RUBRICS, JudgeContext())

    assert (GRADED, GRADED) == runner.run(scenario())


@pytest.mark.parametrize(("vendor", "wire"), [("openai", "anthropic"), ("anthropic", "openai-chat")])
def test_an_endpoint_of_another_protocol_is_refused_before_it_is_asked(vendor: str, wire: Wire) -> None:
    endpoint = Endpoint("model", {wire: "http://127.0.0.1:1"}, "key")

    with pytest.raises(Exception, match=f"speaks {wire}, and .* is needed here"):
        KINDS[vendor](model=Model("acme", "model", endpoint))
