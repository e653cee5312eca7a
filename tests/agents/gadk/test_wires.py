"""Each wire protocol, from the sample to the transcript and from the context to the model's request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from keval import Usage
from keval.plugin import Context, McpServer
from keval_gadk import Api
from keval_gateway import ChatCall, ChatReply, ChatRequest

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver

each_api = pytest.mark.parametrize("api", ["gemini", "chat", "responses", "anthropic"])
OSLO = ChatCall("get_weather", {"city": "Oslo", "units": "metric"})
LODZ = ChatCall("get_weather", {"city": "Łódź", "units": "imperial"})


@each_api
def test_cached_and_reasoning_tokens_are_part_of_input_and_output(driver: Driver, api: Api) -> None:
    transcript = driver.run(lambda _: ChatReply("Sunny.", usage=Usage(20, 9, 5, 4)), api=api)

    told = None if api == "anthropic" else 4  # the gateway counts no thinking on that wire
    assert transcript.usage == Usage(20, 9, 5, told)


@each_api
def test_calls_made_together_keep_their_own_results_and_durations(
    driver: Driver, api: Api, http_server: McpServer
) -> None:
    slow = ChatCall("get_slow_weather", {"city": "Rome", "seconds": 0.3})

    def respond(request: ChatRequest) -> ChatReply:
        return ChatReply("Done.") if request.messages[-1].role == "tool" else ChatReply(calls=(slow, OSLO, LODZ))

    transcript = driver.run(respond, Context(servers=(http_server,)), api=api)

    results = [call.result for call in transcript.tool_calls]
    assert results == ["Rome: slow", "Oslo: 21 degrees, metric", "Łódź: 21 degrees, imperial"]
    slowest, *quick = [call.duration or 0 for call in transcript.tool_calls]
    assert slowest >= 0.3
    assert max(quick) < slowest
    assert transcript.model_calls == 2


@each_api
def test_the_context_and_the_options_reach_the_model(driver: Driver, api: Api) -> None:
    context = Context(
        instructions='Be brief. Answer as {"city": {name}}.',
        model_headers={"x-keval-trial": "t%201", "x-keval-repetition": "2"},
        seed=2**31 + 5,
    )

    temperature = None if api == "anthropic" else 0.25
    driver.run(lambda _: ChatReply("Sunny."), context, api=api, temperature=temperature, max_tokens=77)

    (request,) = driver.requests
    settings = request.raw.get("generationConfig", request.raw)
    limits = {settings.get(name) for name in ("maxOutputTokens", "max_tokens", "max_output_tokens")}
    assert (request.model, request.trial, request.repetition) == ("m", "t 1", 2)
    assert context.instructions in request.system
    assert settings.get("temperature") == temperature
    assert limits == {77, None}
    assert request.seed == {"gemini": 5, "chat": 2**31 + 5}.get(api)


def test_adk_adds_its_agents_name_to_the_instructions_and_marks_tool_descriptions(
    driver: Driver, http_server: McpServer
) -> None:
    """What docs/agents/model-agents.md says about the prompt that a model really gets."""
    driver.run(lambda _: ChatReply("Sunny."), Context(instructions="Be brief.", servers=(http_server,)), api="chat")

    (request,) = driver.requests
    assert request.system.startswith('Be brief.\n\nYou are an agent. Your internal name is "agent".\n\nTool descr')
    assert "<<<BEGIN_UNTRUSTED_TOOL_DESCRIPTION>>>" in request.system
    assert "<<<BEGIN_UNTRUSTED_TOOL_DESCRIPTION>>>" in request.tools[0].description
