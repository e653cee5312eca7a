"""Model requests of every wire read as one conversation: prompt, tools, messages, and what else is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from keval.models import Wire
from keval.recording.volatile import Compared

__all__ = ["Conversation", "read_conversation"]

_PROMPT: Mapping[Wire, tuple[str, ...]] = {
    "openai-chat": (),
    "openai-responses": ("instructions",),
    "anthropic": ("system",),
    "gemini": ("systemInstruction", "system_instruction"),
}
"""The fields that hold the system prompt. Chat Completions has it as the first messages."""
_MESSAGES: Mapping[Wire, str] = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}
_PROMPT_ROLES = ("system", "developer")
_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
_CALL_IDS = ("tool_call_id", "call_id", "tool_use_id")
"""The fields by which a result names its call."""


@attrs.define(slots=False)
class Conversation:
    """A model request as its parts.

    `prompt` is the system prompt as it is sent, and `messages` are all others, each as it is sent. `tools` have
    `description`, `schema` and the `rest` of each tool by its name. `rest` are the fields of the body beside these.
    """

    prompt: Any
    messages: Sequence[Any]
    tools: Mapping[str, Mapping[str, Any]]
    rest: Mapping[str, Any]

    @property
    def prompt_text(self) -> str:
        """The texts of the system prompt."""
        return "\n".join(_texts(self.prompt))

    def answered(self, result: Mapping[str, Any]) -> str | None:
        """Return the name of the tool whose result an object of a message holds; `None` if it holds none."""
        if "response" in result and isinstance(result.get("name"), str):
            name: str = result["name"]
            return name
        call = next((result[key] for key in _CALL_IDS if key in result), None)
        return None if call is None or "arguments" in result else self._names.get(call, "a tool")

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return dict(_calls(self.messages))


def read_conversation(request: Compared) -> Conversation:
    """Read a request whose body is a JSON object."""
    body, wire = request.body, request.wire
    prompt: Any = {name: body[name] for name in _PROMPT[wire] if name in body}
    given = body.get(_MESSAGES[wire], [])
    messages = given if isinstance(given, list) else [given]
    if wire == "openai-chat":
        leading = 0
        while leading < len(messages) and _role(messages[leading]) in _PROMPT_ROLES:
            leading += 1
        prompt, messages = {"messages": messages[:leading]}, messages[leading:]
    taken = {*_PROMPT[wire], _MESSAGES[wire], "tools"}
    tools, others = _tools(body.get("tools") or ())
    rest = {name: value for name, value in body.items() if name not in taken}
    return Conversation(prompt, messages, tools, {**rest, "tools": others} if others else rest)


def _tools(given: Iterable[Any]) -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """Return the tools by name, and whatever else is offered as a tool, such as one that the vendor runs."""
    tools: dict[str, dict[str, Any]] = {}
    others: list[Any] = []
    for entry in given:
        declared = _declarations(entry)
        if not declared:
            others.append(entry)
        for tool in declared:
            schema = {name: tool[name] for name in _SCHEMAS if name in tool}
            rest = {name: value for name, value in tool.items() if name not in {"name", "description", *_SCHEMAS}}
            tools[tool["name"]] = {"description": tool.get("description", ""), "schema": schema, "rest": rest}
    return tools, others


def _declarations(entry: Any) -> list[dict[str, Any]]:
    if not isinstance(entry, dict):
        return []
    of_gemini = entry.get("functionDeclarations") or entry.get("function_declarations")
    found = of_gemini if isinstance(of_gemini, list) else [entry.get("function", entry)]
    return [tool for tool in found if isinstance(tool, dict) and isinstance(tool.get("name"), str)]


def _role(message: Any) -> object:
    return message.get("role") if isinstance(message, dict) else None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a prompt, whether it is one, a list of parts, or an object that has parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in ("role", "type", "cache_control"):
                yield from _texts(item)


def _calls(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the id and the tool's name of every call in the messages."""
    if isinstance(value, list):
        for item in value:
            yield from _calls(item)
    elif isinstance(value, dict):
        function = value.get("function", value)
        number = value.get("call_id", value.get("id"))
        if isinstance(function, dict) and isinstance(number, str) and isinstance(function.get("name"), str):
            yield number, function["name"]
        for item in value.values():
            yield from _calls(item)
