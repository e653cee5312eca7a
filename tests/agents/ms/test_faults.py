"""How a failing model shows: as a ModelError with its status, never as an answer, and without hidden retries."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import attrs
import pytest
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp

from keval import Sample
from keval.plugin import Context, Endpoint, Model, ModelError, PreflightError, TrialError
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault
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
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (429, "rate_limit", True),
        (500, "http_500", True),
        (503, "http_503", True),
        (400, "http_400", False),
        (401, "http_401", False),
        (404, "http_404", False),
    ],
)
def test_an_http_error_is_a_model_error(play: Any, api: str, status: int, kind: str, retryable: bool) -> None:
    def refuse(request: ChatRequest) -> ChatReply:
        raise ModelFault(status, "not today", retry_after=7 if status == 429 else None)

    outcome = play(refuse, api=api)

    assert isinstance(outcome.error, ModelError)
    error = outcome.error
    expected = (status, kind, retryable, 7.0 if status == 429 else None)
    assert expected == (error.status, error.kind, error.retryable, error.retry_after)
    assert "not today" in str(outcome.error)
    assert len(outcome.requests) == 1


@APIS
def test_a_failed_trial_keeps_what_it_had(play: Any, toolbox: Any, api: str) -> None:
    def fail_later(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            raise ModelFault(500, "out of order")
        return ChatReply("Let me see.", (ChatCall("echo", {"text": "hm"}),))

    outcome = play(fail_later, toolbox.server(), api=api)

    assert isinstance(outcome.error, ModelError)
    assert [call.result for call in outcome.transcript.tool_calls] == ["hm"]
    assert (outcome.transcript.model_calls, len(outcome.transcript.turn_durations)) == (1, 1)


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


@APIS
def test_a_reply_that_is_none_is_no_answer(api: str) -> None:
    error = outcome_behind(PlainTextResponse("<html>It works!</html>"), api)

    assert (error.stage, error.kind, error.retryable) == ("model", "bad_reply", True)


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
