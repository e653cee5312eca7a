"""The model that often ignores its tools, and resampling: asking a trial for another answer."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import httpx
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool, wire_urls
from keval_gateway.app import build_app
from keval_gateway.serving import serve
from keval_gateway.simulate import SimulatedModel, SimulatedModels

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = ChatTool("search_docs", "Search the documentation.", SCHEMA)
MODELS = SimulatedModels(SimulatedModel(seed=3))
QUESTION = ChatMessage("user", "How many retries are there?")


def asked(model: str = "careless", **fields: Any) -> ChatReply:
    return MODELS(ChatRequest("openai-chat", model, **{"messages": (QUESTION,), "tools": (SEARCH,), **fields}))


def test_it_ignores_its_tools_about_four_times_in_ten() -> None:
    replies = [asked(repetition=number) for number in range(400)]

    ignored = [reply for reply in replies if not reply.calls]
    assert 0.33 < len(ignored) / 400 < 0.47
    assert all("How many retries are there" in reply.text for reply in ignored)
    assert {"search_docs"} == {call.name for reply in replies for call in reply.calls}


def test_another_model_uses_them_every_time() -> None:
    assert all(asked("docs", repetition=number).calls for number in range(50))


def test_once_it_has_looked_something_up_it_answers_from_that() -> None:
    call = ChatCall("search_docs", {"query": "many retries"}, "c1")
    found = ChatMessage("tool", "There are 3 retries at most.", call_id="c1")
    looked_up = (QUESTION, ChatMessage("assistant", calls=(call,)), found)
    careful = [number for number in range(60) if asked(repetition=number).calls]

    answers = [asked(messages=looked_up, repetition=number).text for number in careful]

    assert careful
    assert all("retries at most" in answer for answer in answers)


def test_a_tool_that_must_be_called_is_called() -> None:
    fields: list[dict[str, Any]] = [{"tool_choice": "required"}, {"forced_tool": "search_docs"}]

    assert all(asked(**each, repetition=number).calls for each in fields for number in range(20))


def test_resampling_is_another_chance() -> None:
    ignoring = [number for number in range(100) if not asked(repetition=number).calls]

    again = [bool(asked(repetition=number, resample=1).calls) for number in ignoring]

    assert {True, False} == set(again)
    assert [bool(asked(repetition=number, resample=1).calls) for number in ignoring] == again


@pytest.mark.parametrize("model", ["docs", "careless", "forgetful"])
def test_the_first_request_is_not_resampled(model: str) -> None:
    plain = ChatRequest("openai-chat", model, (QUESTION,))

    assert MODELS(plain) == MODELS(attrs.evolve(plain, resample=0))
    assert len({MODELS(attrs.evolve(plain, resample=number)).text for number in range(8)}) > 1


def test_the_gateway_reads_the_resample_count_from_its_header() -> None:
    seen: list[int] = []

    def respond(request: ChatRequest) -> ChatReply:
        seen.append(request.resample)
        return ChatReply("Hello.")

    async def scenario() -> list[int]:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        async with serve(build_app(respond)) as base, httpx.AsyncClient(trust_env=False) as client:
            url = f"{wire_urls(base)['openai-chat']}/chat/completions"
            headers: list[dict[str, str]] = [{}, {"x-keval-resample": "2"}, {"x-keval-resample": "often"}]
            return [(await client.post(url, json=body, headers=each)).status_code for each in headers]

    statuses = asyncio.run(scenario())

    assert [200, 200, 400] == statuses
    assert [0, 2] == seen
