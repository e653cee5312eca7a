"""What no agent or judge of keval asks for in this way: stored responses of OpenAI, and schemas of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from google import genai
from google.genai import types
from openai import AsyncOpenAI
from pydantic import BaseModel

from keval_doubles.responders import Scripted
from keval_gateway import wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve

QUESTION = "What's the weather in São Paulo?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_current_weather", "description": "Get the current weather in a city.", "parameters": SCHEMA}
REPORT = {"city": "São Paulo", "temperature": 27.0, "main_condition": "Rain", "description": "light rain"}
LOOP = ({"calls": [{"name": "get_current_weather", "arguments": {"city": "São Paulo"}}]}, {"text": "Found: {result}"})
JUDGE_PROMPT = "How good is this answer: It is 27 °C in Rome."
GRADE = {"score": 4, "reasoning": "It names the city.", "unverified_claims": ["27 °C"]}


class Grade(BaseModel):
    score: int
    reasoning: str
    unverified_claims: list[str]


def through(responder: Scripted, use: Callable[[str], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        async with serve(build_app(responder)) as base:
            return await use(base)

    return asyncio.run(scenario())


def openai(base: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=wire_urls(base)["openai-chat"], api_key="k", max_retries=0)


def gemini(base: str) -> genai.Client:
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=wire_urls(base)["gemini"]))


async def responses_loop(base: str) -> tuple[list[Any], str]:
    async with openai(base) as client:
        tools: Any = [{"type": "function", "strict": False, **FUNCTION}]
        first: Any = await client.responses.create(model="m", input=QUESTION, tools=tools)
        result: Any = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": json.dumps(REPORT)}
        follow_up: Any = {"model": "m", "tools": tools}
        kept = await client.responses.create(previous_response_id=first.id, input=[result], **follow_up)
        whole = await client.responses.create(
            input=[{"role": "user", "content": QUESTION}, first.output[0].to_dict(), result], **follow_up
        )
        assert whole.output_text == kept.output_text
        return [json.loads(item.arguments) for item in first.output], kept.output_text


def test_a_stored_response_is_continued_with_the_result_of_its_call() -> None:
    responder = Scripted(LOOP)

    calls, answer = through(responder, responses_loop)

    assert [{"city": "São Paulo"}] == calls
    assert answer.startswith("Found: ")
    assert "light rain" in answer
    roles = [(message.role, message.name) for message in responder.seen[1].messages]
    assert [("user", ""), ("assistant", ""), ("tool", "get_current_weather")] == roles


async def responses_grade(base: str) -> Any:
    async with openai(base) as client:
        return (await client.responses.parse(model="m", input=JUDGE_PROMPT, text_format=Grade)).output_parsed


async def _gemini_grade(base: str, **form: Any) -> Any:
    client = gemini(base)
    config = types.GenerateContentConfig(response_mime_type="application/json", **form)
    try:
        said = await client.aio.models.generate_content(model="m", contents=JUDGE_PROMPT, config=config)
    finally:
        await client.aio.aclose()
    return Grade.model_validate_json(said.text or "")


async def gemini_schema_grade(base: str) -> Any:
    return await _gemini_grade(base, response_schema=Grade)


async def gemini_json_schema_grade(base: str) -> Any:
    return await _gemini_grade(base, response_json_schema=Grade.model_json_schema())


GRADERS = [responses_grade, gemini_schema_grade, gemini_json_schema_grade]


def check_schema(schema: Mapping[str, Any] | None) -> None:
    assert schema is not None
    properties = schema["properties"]
    kinds = {name: properties[name]["type"] for name in GRADE}
    assert {"score": "integer", "reasoning": "string", "unverified_claims": "array"} == kinds
    assert "string" == properties["unverified_claims"]["items"]["type"]
    assert set(GRADE) == set(schema["required"])


@pytest.mark.parametrize("grade", GRADERS)
def test_the_schema_of_an_answer_reaches_the_responder(grade: Callable[[str], Awaitable[Any]]) -> None:
    responder = Scripted([{"text": json.dumps(GRADE)}])

    verdict = through(responder, grade)

    assert Grade.model_validate(GRADE) == verdict
    check_schema(responder.seen[0].response_schema)
