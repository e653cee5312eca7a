"""How a failing model shows: as a ModelError with its status, never as an answer, and without hidden retries."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import attrs
import pytest
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from keval import Sample
from keval.plugin import Context, Endpoint, Model, ModelError, PreflightError, TrialError
from keval_loopback.serving import serve
from keval_ms import Ms

APIS = pytest.mark.parametrize("api", ["chat", "responses"])


def outcome_behind(app: ASGIApp, api: Any) -> TrialError:
    """Run a trial against a server that is no gateway, and return the error."""

    async def scenario() -> TrialError:
        async with serve(app) as base:
            urls: Any = {"openai-chat": base, "openai-responses": base}
            agent = Ms(model=Model("simulated", "odd", Endpoint("odd", urls, "secret")), api=api)
            with pytest.raises(TrialError) as caught:
                await agent.run(Sample("s1", "How are you?"), Context())
            await agent.aclose()
            return caught.value

    return asyncio.run(scenario())


@APIS
def test_a_model_that_cannot_be_reached_is_a_model_error(api: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    urls: Any = dict.fromkeys(("openai-chat", "openai-responses"), f"http://127.0.0.1:{port}/v1")
    agent = Ms(model=Model("openai", "gone", Endpoint("gone", urls, "secret")), api=api)

    async def scenario() -> ModelError:
        with pytest.raises(ModelError) as caught:
            await agent.run(Sample("s1", "How are you?"), Context())
        await agent.aclose()
        return caught.value

    error = asyncio.run(scenario())

    assert (error.status, error.kind, error.retryable) == (None, "connection", True)
    assert str(error) == "Connection error. All connection attempts failed"


@pytest.mark.parametrize(("code", "status"), [("rate_limit_exceeded", 429), ("server_error", 500)])
def test_a_failure_inside_a_response_is_a_model_error(code: str, status: int) -> None:
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "error": {"code": code, "message": "the model is tired"},
        "model": "odd",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }

    error = outcome_behind(JSONResponse(reply), "responses")

    assert isinstance(error, ModelError)
    assert (status, f"the model failed: {code}: the model is tired") == (error.status, str(error))


def test_a_retry_after_may_be_a_date() -> None:
    headers = {"retry-after": "Fri, 01 Jan 1999 00:00:00 GMT"}

    error = outcome_behind(JSONResponse({"error": {"message": "later"}}, 429, headers), "chat")

    assert (error.kind, error.retry_after) == ("rate_limit", 0.0)


def test_a_model_without_the_chosen_api_is_refused_when_its_endpoint_is_known() -> None:
    agent = Ms(Model.parse("anthropic/claude"))
    resolved = attrs.evolve(agent.model, endpoint=Endpoint("claude", {"anthropic": "http://127.0.0.1:1"}, "secret"))

    with pytest.raises(PreflightError, match="speaks anthropic, and openai-chat is needed here"):
        attrs.evolve(agent, model=resolved)
