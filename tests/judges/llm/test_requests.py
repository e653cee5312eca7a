"""What a judge is sent, and what it must not learn."""

from __future__ import annotations

import json

import pytest

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval.plugin import JudgeContext
from keval_judges.prompt import Sheet
from tests.judges.llm.conftest import GOOD, RUBRICS, Grade

SECRETS = ["mole-agent", "burrow-condition", "trial-0815", "sample-4711", "acme-model-9", "look_up_height", "tool-said"]
BLIND = Trial(
    "trial-0815/mole-agent/burrow-condition",
    Sample(
        "sample-4711",
        "How tall is the Zugspitze?",
        "2962 m",
        facts={"condition": "burrow-condition"},
        metadata={"agent": "mole-agent"},
    ),
    "mole-agent",
    "burrow-condition",
    3,
    Transcript(
        (
            Message("system", "You live in burrow-condition."),
            Message("user", "How tall is the Zugspitze?"),
            Message("assistant", "Let me look."),
            Message("tool", "tool-said 2962"),
            Message("assistant", "It is 2962 m tall."),
        ),
        (ToolCall("look_up_height", {"mountain": "Zugspitze"}, "tool-said 2962"),),
        tools=("look_up_height",),
    ),
    model="acme-model-9",
)


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_neither_agent_nor_condition_nor_tools_reach_the_judge(grade: Grade, vendor: str) -> None:
    outcome = grade(["no verdict", GOOD], vendor, trial=BLIND)

    sent = [json.dumps([request.raw, dict(request.headers)]).lower() for request in outcome.requests]
    assert 2 == len(sent)
    assert [] == [secret for secret in SECRETS for text in sent if secret in text]
    assert all("it is 2962 m tall." in text for text in sent)


def test_openai_is_sent_temperature_seed_and_schema(grade: Grade) -> None:
    (request,) = grade([GOOD], judging=JudgeContext(seed=4711)).requests

    sheet = Sheet.of(RUBRICS, answered=True)
    assert {"model", "messages", "seed", "temperature", "response_format"} == request.raw.keys()
    assert ["scripted", 4711, 0.0] == [request.raw[name] for name in ("model", "seed", "temperature")]
    assert {"name": "verdict", "strict": True, "schema": sheet.schema} == request.raw["response_format"]["json_schema"]
    assert ["system", "user"] == [message["role"] for message in request.raw["messages"]]
    assert sheet.instructions == request.system


def test_anthropic_is_sent_temperature_and_schema(grade: Grade) -> None:
    (request,) = grade([GOOD], "anthropic", judging=JudgeContext(seed=4711)).requests

    sheet = Sheet.of(RUBRICS, answered=True)
    assert {"model", "system", "messages", "max_tokens", "temperature", "output_config"} == request.raw.keys()
    assert ["scripted", 4096, 0.0] == [request.raw[name] for name in ("model", "max_tokens", "temperature")]
    assert {"format": {"type": "json_schema", "schema": sheet.schema}} == request.raw["output_config"]
    assert sheet.instructions == request.system


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_temperature_of_null_is_not_sent(grade: Grade, vendor: str) -> None:
    (request,) = grade([GOOD], vendor, temperature=None).requests

    assert "temperature" not in request.raw


def test_a_seed_that_is_not_wanted_is_not_sent(grade: Grade) -> None:
    (request,) = grade([GOOD], seed=False).requests

    assert {"model", "messages", "temperature", "response_format"} == request.raw.keys()


@pytest.mark.parametrize(("vendor", "name"), [("openai", "max_completion_tokens"), ("anthropic", "max_tokens")])
def test_a_limit_of_tokens_is_sent(grade: Grade, vendor: str, name: str) -> None:
    (request,) = grade([GOOD], vendor, max_tokens=700).requests

    assert 700 == request.raw[name]


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_the_form_can_be_asked_for_by_a_tool(grade: Grade, vendor: str) -> None:
    outcome = grade([GOOD], vendor, structured="tool")

    (request,) = outcome.requests
    assert ("grade", Sheet.of(RUBRICS, answered=True).schema) == (request.forced_tool, request.tools[0].parameters)
    assert set() == {"response_format", "output_config"} & request.raw.keys()
    assert {3.0, 0.0} == {score.value for score in outcome.scores.values()}


def test_the_form_can_be_asked_for_in_words_alone(grade: Grade) -> None:
    outcome = grade([f"```json\n{json.dumps(GOOD)}\n```"], structured="prompt")

    (request,) = outcome.requests
    assert {"model", "messages", "seed", "temperature"} == request.raw.keys()
    assert {3.0, 0.0} == {score.value for score in outcome.scores.values()}


@pytest.mark.parametrize("structured", ["json_schema", "tool", "prompt"])
def test_every_key_of_the_verdict_is_named_in_the_instructions(grade: Grade, structured: str) -> None:
    (request,) = grade([GOOD], structured=structured).requests

    assert [] == [key for key in GOOD if f'- "{key}": ' not in request.system]
