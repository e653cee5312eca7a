"""Messages of OpenAI's protocols, in the documented form and with what the model thought.

Vendors write them in other forms, too, and frameworks send them back without what was thought.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from keval.records.models import Wire
from keval_clients.replies import read_failure, read_json, write_json

_PARTS = re.compile(rb'"content"\s*:\s*\[')
_UNUSUAL = re.compile(
    rb'"content"\s*:\s*\[|"(tool_calls|function_call)"\s*:\s*[\[{]\s*["{]|"type"\s*:\s*"function_call"'
    rb'|"refusal"\s*:\s*"|"finish_reason"\s*:\s*"error"'
)
"""What a reply has that may have to be written anew. Most replies have none of it, and are not read for that."""
_THOUGHT = re.compile(rb'"(reasoning_content|reasoning_details|extra_content|thinking)"\s*:\s*[^n\s]|"reasoning"')
CONVERSATION: Mapping[Wire, str] = {"openai-chat": "messages", "openai-responses": "input"}
"""The field of a request that has what was said before."""
WANTS_THOUGHT = re.compile(
    rb"reasoning_content|reasoning_details|thought_?signature|passed back|required 'reasoning' item", re.IGNORECASE
)
"""What an endpoint says that wants back what the model thought before it called tools."""
_TEXTS = {"text": "text", "output_text": "text", "refusal": "refusal"}
"""The types of a content's parts that are said to the user, and where each has its text."""


def text_in(content: object) -> str:
    """Return the text of a message's content, which may be a list of parts, as may that of a part; reasoning is none.

    Raises:
        TypeError: the content is no text.
        KeyError: a part of it has not the form of one.
    """
    if isinstance(content, list):
        return "".join(text_in(part[_TEXTS[part["type"]]]) for part in content if part["type"] in _TEXTS)
    if not isinstance(content, str | None):
        raise TypeError("the content is no text")
    return content or ""


def mend_calls(message: dict[str, Any], number: int) -> None:
    """Give each tool call of a message an id of its own, its type, and arguments as a text, where it has them not.

    `number` is greater for each reply of a conversation. Nine letters and digits are what Mistral's models take as an
    id. A `function_call`, as calls were before, becomes one of the `tool_calls`.

    Raises AttributeError, KeyError or TypeError: the calls have not the form of any.
    """
    if not message.get("tool_calls") and (called := message.pop("function_call", None)):
        message["tool_calls"] = [{"function": called}]
    known: set[str] = set()
    for call in message.get("tool_calls") or ():
        if not isinstance(call.get("id"), str) or call["id"] in ("", *known):
            call["id"] = f"call{number + len(known):05}"
        known.add(call["id"])
        call["type"] = call.get("type") or "function"
        given = call["function"].get("arguments")
        if not isinstance(given, str):
            call["function"]["arguments"] = "" if given is None else json.dumps(given, ensure_ascii=False)


def for_framework(wire: Wire, asked: bytes, body: bytes, thoughts: dict[int, list[Any]]) -> bytes:
    """Return a reply as a framework reads it that knows the documented form alone; a reply of that form as it is.

    Calls are mended, and content or a refusal become one text. What has the form of no reply is returned as it is, too.
    What the model said that calls tools after some thought is kept in `thoughts`, by its place in the conversation.

    Raises ModelError: an upstream provider of OpenRouter's failed while it wrote.
    """
    if not _UNUSUAL.search(body):
        return body
    try:
        reply = read_json(body)
        if wire == "openai-responses":
            said = reply["output"]
        else:
            choice = reply["choices"][0]
            if choice.get("finish_reason") == "error":
                raise read_failure(choice.get("error"))
            message = choice["message"]
            mend_calls(message, asked.count(b'"role"'))
            said = [{**message}]
            if choice.get("finish_reason") == "function_call":
                choice["finish_reason"] = "tool_calls"
            refusal = message.pop("refusal", None)
            message["content"] = text_in(message.get("content")) or refusal
        if _called(said) and _THOUGHT.search(body):
            thoughts[len(read_json(asked)[CONVERSATION[wire]])] = said
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return body
    return body if wire == "openai-responses" else json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")


async def events_for_framework(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the events of a streamed reply, with texts in place of content that comes as lists of parts."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield b"".join((_with_text(line) if _PARTS.search(line) else line) + b"\n" for line in lines)
    if rest:
        yield rest


def _with_text(line: bytes) -> bytes:
    try:
        event = read_json(line.removeprefix(b"data:"))
        delta = event["choices"][0]["delta"]
        delta["content"] = text_in(delta["content"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return line
    return b"data: " + write_json(event)


def put_back(thoughts: Mapping[int, list[Any]], wire: Wire, asked: bytes) -> bytes:
    """Return a request with what the model said before its calls as it wrote that, where it is in its place."""
    body = read_json(asked)
    earlier = body[CONVERSATION[wire]]
    for place, said in sorted(thoughts.items(), reverse=True):  # from the end, as items are added
        end = place + sum(item.get("type") != "reasoning" for item in said)
        if _called(earlier[place:end]) == _called(said):
            earlier[place:end] = said
    return write_json(body)


def _called(items: Sequence[Mapping[str, Any]]) -> list[str]:
    calls = [(call, "id") for item in items for call in item.get("tool_calls") or ()]
    calls += [(item, "call_id") for item in items if item.get("type") == "function_call"]
    return [call[name] for call, name in calls]
