"""The models by name: the forgetful one sees one turn, the careless one ignores its tools, and all can be resampled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from openai import AsyncOpenAI

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool
from keval_simulator import SimulatedProvider
from keval_simulator.answers import Flaws
from keval_simulator.model import SimulatedModel
from keval_simulator.responders import ForgetfulModel, careless, forgetful, simulated


def tool(name: str, what: str, parameter: str) -> ChatTool:
    properties = {parameter: {"type": "string"}}
    return ChatTool(name, what, {"type": "object", "properties": properties, "required": [parameter]})


WEATHER = tool("get_current_weather", "Get the current weather in a city.", "city")
PREFERENCES = tool("get_user_preferences", "Get what is known of a user's preferences.", "user_id")
SEARCH = tool("search_docs", "Search the documentation.", "query")
STEADY = SimulatedModel(flaws=Flaws(misreads=0))
MODELS: dict[str, Callable[[ChatRequest], ChatReply]] = {
    "weather": STEADY,
    "weather without a memory": ForgetfulModel(STEADY),
    "careless": careless(seed=3),
    "forgetful": forgetful(seed=3),
    "docs": simulated(seed=3),
}
RETRIES = ChatMessage("user", "How many retries are there?")


def asked(model: str, *messages: ChatMessage, **fields: Any) -> ChatReply:
    return MODELS[model](ChatRequest("openai-chat", model, messages, **{"system": "The user's id is u1.", **fields}))


def user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def without_memory(*messages: ChatMessage, **fields: Any) -> ChatReply:
    return asked("weather without a memory", *messages, **{"tools": (WEATHER, PREFERENCES), **fields})


def test_its_name_after_the_slash_is_what_the_gateway_is_asked_for() -> None:
    messages: Any = [
        {"role": "user", "content": "What's the weather in São Paulo?"},
        {"role": "assistant", "content": "It is 27 °C in São Paulo."},
        {"role": "user", "content": "And tomorrow?"},
    ]
    function = {"name": WEATHER.name, "description": WEATHER.description, "parameters": WEATHER.parameters}
    tools: Any = [{"type": "function", "function": function}]

    async def scenario() -> list[Any]:
        found = []
        async with SimulatedProvider().open(["weather", "forgetful", "forgetful-not"], seed=0) as endpoints:
            for endpoint in endpoints.values():
                urls, key = endpoint.urls, endpoint.api_key
                async with AsyncOpenAI(base_url=urls["openai-chat"], api_key=key, max_retries=0) as client:
                    said = await client.chat.completions.create(model=endpoint.model, messages=messages, tools=tools)
                    found.append(said.choices[0].message)
        return found

    remembering, forgetful, other = asyncio.run(scenario())

    assert ['{"city":"São Paulo"}'] * 2 == [each.tool_calls[0].function.arguments for each in (remembering, other)]
    assert not forgetful.tool_calls
    assert "São Paulo" not in forgetful.content


def test_what_was_said_before_changes_nothing() -> None:
    question = user("What should I wear in Oslo?")
    histories = [
        (),
        (user("I hate the cold."), ChatMessage("assistant", "Noted.")),
        (user("My user id is u7."), ChatMessage("assistant", "Hello u7."), user("Weather in Rome?")),
    ]

    replies = [without_memory(*history, question) for history in histories]

    assert [replies[0]] * 3 == replies


def test_what_its_tools_said_in_this_turn_it_knows() -> None:
    call = ChatCall("get_current_weather", {"city": "Oslo"}, "c1")
    result = '{"city": "Oslo", "temperature": -4.5, "main_condition": "Clear"}'
    turn = (
        user("Weather in Oslo?"),
        ChatMessage("assistant", calls=(call,)),
        ChatMessage("tool", result, call_id="c1"),
    )

    replies = [without_memory(*before, *turn) for before in ((), (user("Hello!"), ChatMessage("assistant", "Hi!")))]

    assert replies[0] == replies[1]
    assert "city: Oslo; temperature: -4.5" in replies[0].text


def test_the_system_prompt_it_knows() -> None:
    here = without_memory(user("And how cold is it?"), system="The user lives in Łódź.")

    assert [("get_current_weather", {"city": "Łódź"})] == [(call.name, call.arguments) for call in here.calls]


def test_it_looks_preferences_up_only_when_it_is_asked_for_them() -> None:
    def looked_up(model: str, question: str) -> int:
        tools = (WEATHER, PREFERENCES)
        replies = [asked(model, user(question), tools=tools, repetition=number) for number in range(40)]
        return sum("get_user_preferences" in [call.name for call in reply.calls] for reply in replies)

    advice, preferences = "What should I wear in Oslo?", "What are my preferences?"

    assert looked_up("weather", advice) > 30
    assert 0 == looked_up("weather without a memory", advice)
    assert 40 == looked_up("weather without a memory", preferences)


def test_in_a_first_turn_it_is_the_same_model() -> None:
    fields = [{"tools": tools, "repetition": number} for tools in ((WEATHER,), ()) for number in range(10)]

    with_memory, without = (
        [asked(model, user("What's the weather in Oslo?"), **each) for each in fields]
        for model in ("weather", "weather without a memory")
    )

    assert with_memory == without


def search(model: str = "careless", **fields: Any) -> ChatReply:
    return asked(model, *fields.pop("messages", (RETRIES,)), **{"tools": (SEARCH,), **fields})


def test_a_careless_model_ignores_its_tools_about_four_times_in_ten() -> None:
    replies = [search(repetition=number) for number in range(400)]

    ignored = [reply for reply in replies if not reply.calls]
    assert 0.33 < len(ignored) / 400 < 0.47
    assert all("How many retries are there" in reply.text for reply in ignored)
    assert all(search("docs", repetition=number).calls for number in range(50))


def test_once_it_has_looked_something_up_it_answers_from_that() -> None:
    call = ChatCall("search_docs", {"query": "retries"}, "c1")
    found = ChatMessage("tool", "There are 3 retries at most.", call_id="c1")
    looked_up = (RETRIES, ChatMessage("assistant", calls=(call,)), found)
    careful = [number for number in range(60) if search(repetition=number).calls]

    answers = [search(messages=looked_up, repetition=number).text for number in careful]

    assert careful
    assert all("retries at most" in answer for answer in answers)


def test_a_tool_that_must_be_called_is_called() -> None:
    fields: list[dict[str, Any]] = [{"tool_choice": "required"}, {"forced_tool": "search_docs"}]

    assert all(search(**each, repetition=number).calls for each in fields for number in range(20))


def test_resampling_is_another_chance() -> None:
    ignoring = [number for number in range(100) if not search(repetition=number).calls]

    again = [bool(search(repetition=number, resample=1).calls) for number in ignoring]

    assert {True, False} == set(again)
    assert [bool(search(repetition=number, resample=1).calls) for number in ignoring] == again


@pytest.mark.parametrize("model", ["docs", "careless", "forgetful"])
def test_the_first_request_is_not_resampled(model: str) -> None:
    plain = ChatRequest("openai-chat", model, (RETRIES,))

    assert MODELS[model](plain) == MODELS[model](attrs.evolve(plain, resample=0))
    assert len({MODELS[model](attrs.evolve(plain, resample=number)).text for number in range(8)}) > 1
