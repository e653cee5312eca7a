"""The model that forgets: what it still sees of a conversation, on every wire, and what it does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import attrs
import pytest
from anthropic import AsyncAnthropic
from google import genai
from google.genai import types
from openai import AsyncOpenAI

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool, wire_urls
from keval_gateway.app import build_app
from keval_gateway.responders import RespondersByName
from keval_loopback.serving import serve
from keval_simulator import SimulatedProvider
from keval_simulator.flaws import Flaws
from keval_simulator.model import SimulatedModel
from keval_simulator.responders import ForgetfulModel

DAYS = {"type": "integer", "default": 3}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": DAYS}, "required": ["city"]}
FUNCTION = {"name": "get_weather_forecast", "description": "Get the forecast for a city.", "parameters": SCHEMA}
SYSTEM = "You help with the weather."
SAID = [
    ("user", "What's the weather in São Paulo?"),
    ("assistant", "It is 27 °C in São Paulo."),
    ("user", "And tomorrow?"),
]
REMEMBERED = [{"city": "São Paulo", "days": 2}]

Ask: TypeAlias = Callable[[str, str], Awaitable[tuple[list[Any], str]]]
"""Given the gateway's base URL and a model, says what is said above; returns the arguments of calls, and the text."""


async def ask_chat(base: str, model: str) -> tuple[list[Any], str]:
    async with AsyncOpenAI(base_url=wire_urls(base)["openai-chat"], api_key="k", max_retries=0) as client:
        messages: Any = [{"role": role, "content": text} for role, text in [("system", SYSTEM), *SAID]]
        tools: Any = [{"type": "function", "function": FUNCTION}]
        said = await client.chat.completions.create(model=model, messages=messages, tools=tools)
        message: Any = said.choices[0].message
        return [json.loads(call.function.arguments) for call in message.tool_calls or ()], message.content or ""


async def ask_responses(base: str, model: str) -> tuple[list[Any], str]:
    async with AsyncOpenAI(base_url=wire_urls(base)["openai-chat"], api_key="k", max_retries=0) as client:
        tools: Any = [{"type": "function", "strict": False, **FUNCTION}]
        first = await client.responses.create(model=model, instructions=SYSTEM, input=SAID[0][1])
        said: Any = await client.responses.create(
            model=model, instructions=SYSTEM, input=SAID[2][1], tools=tools, previous_response_id=first.id
        )
        calls = [item for item in said.output if item.type == "function_call"]
        return [json.loads(call.arguments) for call in calls], said.output_text


async def ask_anthropic(base: str, model: str) -> tuple[list[Any], str]:
    async with AsyncAnthropic(base_url=wire_urls(base)["anthropic"], api_key="k", max_retries=0) as client:
        messages: Any = [{"role": role, "content": text} for role, text in SAID]
        tools: Any = [{"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": SCHEMA}]
        said = await client.messages.create(model=model, max_tokens=99, system=SYSTEM, messages=messages, tools=tools)
        blocks: list[Any] = said.content
        return (
            [block.input for block in blocks if block.type == "tool_use"],
            "".join(block.text for block in blocks if block.type == "text"),
        )


async def ask_gemini(base: str, model: str) -> tuple[list[Any], str]:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=wire_urls(base)["gemini"]))
    declaration = types.FunctionDeclaration(
        name="get_weather_forecast", description="Get the forecast for a city.", parameters_json_schema=SCHEMA
    )
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM,
        tools=[types.Tool(function_declarations=[declaration])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    roles = {"user": "user", "assistant": "model"}
    contents: Any = [types.Content(role=roles[role], parts=[types.Part(text=text)]) for role, text in SAID]
    try:
        said = await client.aio.models.generate_content(model=model, contents=contents, config=config)
    finally:
        await client.aio.aclose()
    calls = said.function_calls or []
    return [call.args for call in calls], "" if calls else said.text or ""


@pytest.mark.parametrize("ask", [ask_chat, ask_responses, ask_anthropic, ask_gemini])
def test_only_the_model_of_that_name_forgets(ask: Ask) -> None:
    async def scenario() -> list[tuple[list[Any], str]]:
        async with serve(build_app(RespondersByName(seed=0))) as base:
            return [await ask(base, model) for model in ("weather", "forgetful", "forgetful-not", "weather")]

    remembering, forgetful, *others = asyncio.run(scenario())

    assert (REMEMBERED, "") == remembering
    assert [] == forgetful[0]
    assert "city" in forgetful[1]
    assert "São Paulo" not in forgetful[1]
    assert [remembering] * 2 == others


def test_its_name_after_the_slash_is_what_the_gateway_is_asked_for() -> None:
    async def scenario() -> list[list[Any]]:
        async with SimulatedProvider().open(["weather", "forgetful"], seed=0) as endpoints:
            found = []
            for endpoint in endpoints.values():
                urls, key = endpoint.urls, endpoint.api_key
                async with AsyncOpenAI(base_url=urls["openai-chat"], api_key=key, max_retries=0) as client:
                    messages: Any = [{"role": role, "content": text} for role, text in SAID]
                    tools: Any = [{"type": "function", "function": FUNCTION}]
                    said = await client.chat.completions.create(model=endpoint.model, messages=messages, tools=tools)
                    found.append(list(said.choices[0].message.tool_calls or ()))
            return found

    remembering, forgetful = asyncio.run(scenario())

    assert (1, 0) == (len(remembering), len(forgetful))


TEXT = {"type": "string"}
TOOLS = tuple(
    ChatTool(name, what, {"type": "object", "properties": {parameter: TEXT}, "required": [parameter]})
    for name, what, parameter in (
        ("get_current_weather", "Get the current weather in a city.", "city"),
        ("get_user_preferences", "Get what is known of a user's preferences.", "user_id"),
    )
)
WEATHER = SimulatedModel(flaws=Flaws(omits_advice=0, forgets_user=0))
MODELS: dict[str, Callable[[ChatRequest], ChatReply]] = {"weather": WEATHER, "forgetful": ForgetfulModel(WEATHER)}


def asked(*messages: ChatMessage, model: str = "forgetful", **fields: Any) -> ChatReply:
    return MODELS[model](
        ChatRequest("gemini", model, messages, **{"system": "The user's id is u1.", "tools": TOOLS, **fields})
    )


def user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def test_what_was_said_before_changes_nothing() -> None:
    question = user("What should I wear in Oslo?")
    histories = [
        (),
        (user("I hate the cold."), ChatMessage("assistant", "Noted.")),
        (user("My user id is u7."), ChatMessage("assistant", "Hello u7."), user("Weather in Rome?")),
    ]

    replies = [asked(*history, question) for history in histories]

    assert [replies[0]] * 3 == replies


def test_what_its_tools_said_in_this_turn_it_knows() -> None:
    call = ChatCall("get_current_weather", {"city": "Oslo"}, "c1")
    result = '{"city": "Oslo", "temperature": -4.5, "main_condition": "Clear", "preferences": {"dislikes_cold": true}}'
    turn = (
        user("Weather in Oslo?"),
        ChatMessage("assistant", calls=(call,)),
        ChatMessage("tool", result, call_id="c1"),
    )

    replies = [asked(*before, *turn) for before in ((), (user("Hello!"), ChatMessage("assistant", "Hi!")))]

    assert replies[0] == replies[1]
    assert "in Oslo" in replies[0].text
    assert "Since you dislike the cold" in replies[0].text


def test_the_system_prompt_it_knows() -> None:
    here = asked(user("And how cold is it?"), system="The user lives in Łódź.")

    assert [("get_current_weather", {"city": "Łódź"})] == [(call.name, call.arguments) for call in here.calls]


def test_it_looks_preferences_up_only_when_it_is_asked_for_them() -> None:
    def looked_up(model: str, question: str) -> int:
        replies = [asked(user(question), model=model, repetition=number) for number in range(40)]
        return sum("get_user_preferences" in [call.name for call in reply.calls] for reply in replies)

    advice, preferences = "What should I wear in Oslo?", "What are my preferences?"

    assert looked_up("weather", advice) > 30
    assert 0 == looked_up("forgetful", advice)
    assert 40 == looked_up("forgetful", preferences)


def test_in_a_first_turn_it_is_the_same_model() -> None:
    request = ChatRequest("gemini", "weather", (user("What's the weather in Oslo?"),), tools=TOOLS[:1])
    requests = [attrs.evolve(request, tools=tools, repetition=n) for tools in (TOOLS[:1], ()) for n in range(10)]

    assert [MODELS["weather"](each) for each in requests] == [MODELS["forgetful"](each) for each in requests]
