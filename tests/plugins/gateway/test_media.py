"""Images and files in a request: each wire has its own place for them, and the model behind it is told alike."""

from __future__ import annotations

from typing import Any

import pytest

from keval_gateway import ChatMessage
from keval_gateway.protocols import WireProtocol
from keval_gateway.protocols.anthropic import AnthropicMessages
from keval_gateway.protocols.gemini import GeminiContent
from keval_gateway.protocols.openai import OpenAIChat, OpenAIResponses


def chat(data: str) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look!"}]
    messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": "c1", "content": "a dot"}, {"role": "user", "content": [shown]}]
    return {"model": "m", "messages": messages}


def responses(data: str) -> dict[str, Any]:
    shown = {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
    items: list[dict[str, Any]] = [{"role": "user", "content": "Look!"}]
    items += [{"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}]
    output = [{"type": "input_text", "text": "a dot"}, shown]
    items += [{"type": "function_call_output", "call_id": "c1", "output": output}]
    return {"model": "m", "input": items}


def messages(data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": data}
    content = [{"type": "text", "text": "a dot"}, {"type": "image", "source": source}]
    asked = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]}
    told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content}]}
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Look!"}, asked, told]}


def gemini(data: str) -> dict[str, Any]:
    shown = {"inlineData": {"mimeType": "image/png", "data": data}}
    response = {"id": "c1", "name": "look", "response": {"result": "a dot"}, "parts": [shown]}
    asked = {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]}
    told = {"role": "user", "parts": [{"functionResponse": response}]}
    return {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Look!"}]}, asked, told]}


@pytest.mark.parametrize(
    ("protocol", "body", "kind"),
    [
        (OpenAIChat(), chat, "image_url"),
        (OpenAIResponses(), responses, "input_image"),
        (AnthropicMessages(), messages, "image"),
        (GeminiContent(), gemini, "inlineData"),
    ],
    ids=["chat", "responses", "anthropic", "gemini"],
)
def test_an_image_belongs_to_the_result_that_shows_it(protocol: WireProtocol, body: Any, kind: str) -> None:
    request, other = protocol.parse(body("AAAA")), protocol.parse(body("BBBB"))

    def told(message: ChatMessage) -> tuple[str, str, int]:
        return message.role, message.call_id, len(message.media)

    assert [("user", "", 0), ("assistant", "", 0), ("tool", "c1", 1)] == [told(said) for said in request.messages]
    assert "a dot" in request.messages[-1].text
    assert request.messages[-1].media[0].startswith(f"{kind} ")
    # Another image is another question, so a simulated model may answer it in another way.
    assert request.canonical() != other.canonical()
    assert request.canonical() == protocol.parse(body("AAAA")).canonical()


def test_a_message_of_an_image_alone_is_a_message() -> None:
    body = chat("AAAA")
    body["messages"] = body["messages"][-1:]

    (said,) = OpenAIChat().parse(body).messages

    assert ("user", "", 1) == (said.role, said.text, len(said.media))
