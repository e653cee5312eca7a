"""The model that often ignores its tools, and resampling: asking a trial for another answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool
from keval_simulator.responders import careless, forgetful, simulated

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = ChatTool("search_docs", "Search the documentation.", SCHEMA)
MODELS: dict[str, Callable[[ChatRequest], ChatReply]] = {
    "careless": careless(seed=3),
    "forgetful": forgetful(seed=3),
    "docs": simulated(seed=3),
}
QUESTION = ChatMessage("user", "How many retries are there?")


def asked(model: str = "careless", **fields: Any) -> ChatReply:
    return MODELS[model](ChatRequest("openai-chat", model, **{"messages": (QUESTION,), "tools": (SEARCH,), **fields}))


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

    assert MODELS[model](plain) == MODELS[model](attrs.evolve(plain, resample=0))
    assert len({MODELS[model](attrs.evolve(plain, resample=number)).text for number in range(8)}) > 1
