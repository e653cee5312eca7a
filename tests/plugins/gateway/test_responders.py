"""Responders by name: which package's is found, when it is made, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import httpx
import pytest

from keval.plugin import PluginError, Wire
from keval_gateway import ChatMessage, ChatReply, ChatRequest, ModelFault, find_responder, wire_urls
from keval_gateway.app import build_app
from keval_gateway.responders import GROUP, RespondersByName, installed_responders, make_responder
from keval_loopback.serving import serve

SCRIPT = (ChatMessage("user", "{script: [{text: 'I am {model}, of seed {seed}.'}]}"),)
PLAIN = (ChatMessage("user", "Hello!"),)


def asked(responders: RespondersByName, model: str, messages: tuple[ChatMessage, ...] = SCRIPT) -> ChatReply:
    reply = responders(ChatRequest("openai-chat", model, messages))
    assert isinstance(reply, ChatReply)
    return reply


def test_every_entry_of_the_group_is_listed_with_its_package_and_none_is_imported() -> None:
    names = {each.name: each.distribution for each in installed_responders()}

    assert {point.name for point in entry_points(group=GROUP)} == names.keys()
    assert "keval-simulator" == names["simulated"] == names["forgetful"]
    assert "keval-doubles" == names["double/absent"]


def test_a_request_is_answered_by_the_responder_of_its_models_name_and_seed() -> None:
    responders = RespondersByName(seed=5)

    assert "I am scripted, of seed 5." == asked(responders, "scripted").text
    assert "I am double/scripted, of seed 5." == asked(responders, "double/scripted").text


def test_every_other_name_is_answered_by_the_simulated_model() -> None:
    responders = RespondersByName(seed=5)

    replies = [asked(responders, name, PLAIN) for name in ("simulated", "weather", "double", "double/other", "a/b")]

    assert [make_responder("simulated", 5)(ChatRequest("gemini", "m", PLAIN))] * 5 == replies


def test_a_responder_is_made_once() -> None:
    responders, busy = RespondersByName(0), "{script: [{fault: {status: 429}}, {text: Now.}]}"

    with pytest.raises(ModelFault):
        asked(responders, "scripted", (ChatMessage("user", busy),))

    assert "Now." == asked(responders, "scripted", (ChatMessage("user", busy),)).text


CANNOT = {
    "double/absent": "ModuleNotFoundError: No module named 'keval_doubles.nowhere'; reinstall keval-doubles",
    "double/broken": "the responder 'double/broken' of keval-doubles 1.0 cannot be made: ZeroDivisionError: division",
    "double/no-function": "the responder 'double/no-function' of keval-doubles 1.0 is of type int",
}


@pytest.mark.parametrize("name", CANNOT)
def test_one_that_cannot_be_made_breaks_only_the_requests_for_it(name: str) -> None:
    responders = RespondersByName(0)

    with pytest.raises(ModelFault) as caught:
        asked(responders, name)

    assert 404 == caught.value.status
    assert CANNOT[name] in caught.value.message
    assert asked(responders, "scripted").text


def test_two_owners_of_a_name_are_an_error_that_names_both(ship: Callable[[str, str], None]) -> None:
    ship("acme-script", "scripted")

    with pytest.raises(PluginError) as found:
        find_responder("scripted")
    with pytest.raises(ModelFault) as answered:
        asked(RespondersByName(0), "scripted")

    told = "the responder 'scripted' is shipped by acme-script and keval-doubles; uninstall one of them"
    assert [told, told] == [str(found.value), answered.value.message]


def test_a_name_with_a_vendor_is_served_on_every_wire() -> None:
    text = "{script: [{text: 'I am {model}.'}]}"
    said = [{"role": "user", "content": text}]
    bodies: dict[Wire, tuple[str, dict[str, Any]]] = {
        "openai-chat": ("/chat/completions", {"messages": said}),
        "openai-responses": ("/responses", {"input": text}),
        "anthropic": ("/v1/messages", {"messages": said, "max_tokens": 9}),
        "gemini": ("/v1beta/models/double/scripted:generateContent", {"contents": [{"parts": [{"text": text}]}]}),
    }

    async def scenario() -> list[str]:
        async with serve(build_app(RespondersByName(0))) as base, httpx.AsyncClient() as client:
            urls = wire_urls(base)
            return [
                (await client.post(urls[wire] + path, json={"model": "double/scripted", **body})).text
                for wire, (path, body) in bodies.items()
            ]

    assert [True] * 4 == ["I am double/scripted." in answer for answer in asyncio.run(scenario())]
