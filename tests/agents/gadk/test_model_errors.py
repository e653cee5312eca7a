"""What a model's endpoint can do wrong, and what the run makes of it."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from keval import Sample
from keval.plugin import Context, Endpoint, McpServer, Model, ModelError, TrialError
from keval_gadk import Api, Gadk
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault, wire_urls

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver

each_api = pytest.mark.parametrize("api", ["gemini", "chat", "responses", "anthropic"])


@each_api
def test_a_rate_limit_says_how_long_to_wait(driver: Driver, api: Api) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        raise ModelFault(429, "slow down", retry_after=7)

    with pytest.raises(ModelError, match=r"answered with status 429: slow down") as raised:
        driver.run(respond, api=api)

    error = raised.value
    assert (error.kind, error.status, error.retryable, error.retry_after) == ("rate_limit", 429, True, 7.0)
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
