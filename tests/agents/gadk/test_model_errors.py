"""What a model's endpoint can do wrong, and what the run makes of it."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from keval import Sample, Usage
from keval.plugin import Context, Endpoint, McpServer, Model, ModelError, Recorder, TrialError
from keval_gadk import Api, Gadk
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault, wire_urls

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver

each_api = pytest.mark.parametrize("api", ["gemini", "chat", "responses", "anthropic"])


@each_api
def test_a_rate_limit_says_how_long_to_wait(driver: Driver, api: Api) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        raise ModelFault(429, "slow down", retry_after=7)

    with pytest.raises(ModelError, match=r"answered 429: .*slow down") as raised:
        driver.run(respond, api=api)

    error = raised.value
    assert (error.kind, error.status, error.retryable, error.retry_after) == ("rate_limit", 429, True, 7.0)
    assert len(driver.requests) == 1


@pytest.mark.parametrize(
    ("api", "status", "retryable"),
    [
        ("gemini", 500, True),
        ("chat", 500, True),
        ("responses", 500, True),
        ("anthropic", 529, True),
        ("gemini", 400, False),
        ("chat", 404, False),
        ("anthropic", 403, False),
    ],
)
def test_a_refusal_has_its_status(driver: Driver, api: Api, status: int, retryable: bool) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        raise ModelFault(status, "no")

    with pytest.raises(ModelError, match=f"answered {status}: .*no") as raised:
        driver.run(respond, api=api)

    error = raised.value
    assert (error.stage, error.kind, error.retryable, error.retry_after) == (
        "model",
        f"http_{status}",
        retryable,
        None,
    )
    assert len(driver.requests) == 1


@each_api
def test_an_endpoint_that_is_not_there(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    agent = Gadk(Model("simulated", "m", Endpoint("m", wire_urls(base), "key")), api=api)

    async def scenario() -> None:
        try:
            await agent.run(Sample("s1", "Weather?"), Context())
        finally:
            await agent.aclose()

    with pytest.raises(ModelError, match="could not be reached: Connect") as raised:
        asyncio.run(scenario())

    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


def test_a_failed_trial_keeps_what_happened_before(driver: Driver, http_server: McpServer) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            raise ModelFault(503, "overloaded")
        return ChatReply(calls=(ChatCall("get_weather", {"city": "Oslo"}),), usage=Usage(10, 2))

    recorder = Recorder()
    with pytest.raises(ModelError):
        driver.run(respond, Context(servers=(http_server,), recorder=recorder), api="chat")

    transcript = recorder.transcript()
    assert [call.result for call in transcript.tool_calls] == ["Oslo: 21 degrees, metric"]
    assert (transcript.model_calls, transcript.usage.input_tokens) == (1, 10)
    assert transcript.duration is not None


def test_max_turns_bounds_the_model_calls_of_a_turn(driver: Driver, http_server: McpServer) -> None:
    call = ChatCall("get_weather", {"city": "Oslo"})

    with pytest.raises(TrialError, match="more than 3 model calls") as raised:
        driver.run(lambda _: ChatReply(calls=(call,)), Context(servers=(http_server,)), api="chat", max_turns=3)

    assert (raised.value.kind, raised.value.retryable) == ("max_turns", False)
    assert len(driver.requests) == 3


def test_max_turns_counts_anew_for_every_turn(driver: Driver) -> None:
    sample = Sample("s1", "One?", turns=("Two?", "Three?"))

    transcript = driver.run(lambda _: ChatReply("Yes."), None, sample, api="chat", max_turns=1)

    assert transcript.model_calls == 3


@each_api
def test_a_model_that_says_nothing_is_no_answer(driver: Driver, api: Api) -> None:
    with pytest.raises(TrialError, match="the model itself ended the reply before it said anything") as raised:
        driver.run(lambda _: ChatReply(""), api=api)

    assert (raised.value.stage, raised.value.kind) == ("model", "no_answer")
