"""The neutral records that every wire protocol is translated to and from, and what a responder is.

A responder is handed a `ChatRequest` and returns a `ChatReply`, whichever wire protocol the client speaks;
`ChatRequest.wire` names that. `wire_urls` has where each protocol is reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from keval import Usage
from keval.records.models import Wire

ToolChoice: TypeAlias = Literal["auto", "none", "required"]
"""Whether the model may, must not or must call a tool."""
KEY_VARIABLE = "KEVAL_GATEWAY_KEY"
"""The environment variable that may have the API key that a gateway admits; a command's argument shows in `ps`."""


@attrs.frozen
class ChatTool:
    """A tool the model is offered; `parameters` is a JSON Schema of type object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class ChatCall:
    """A tool call the model asks for. An empty `id` in a reply is filled in by the gateway."""

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    id: str = ""


@attrs.frozen
class ChatMessage:
    """One message: the user's or assistant's text, the assistant's tool calls, or the result of one call.

    `call_id` and `name` tell which call a `tool` message answers, as far as the protocol says; `error` is true where
    the protocol marks the result as an error. `media` are the type and SHA-256 of each image, sound or file, of which a
    responder knows no more.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    call_id: str = ""
    name: str = ""
    error: bool = False
    media: tuple[str, ...] = ()


@attrs.frozen
class ChatRequest:
    """One request to the model.

    `response_schema` is the JSON Schema the answer's text must conform to; with `forced_tool` the reply must call that
    tool. `max_tokens` bounds the reply's length; the gateway cuts a longer text off there. `trial`, `repetition` and
    `resample` come from the headers that a keval adapter sends; `resample` counts how often the trial's answer was
    discarded and another one asked for. `raw` is the JSON body as it arrived, and `headers` are the HTTP headers in
    lower case. Both are for tests and must not influence an answer, but for a header by which a middleware tells a
    responder something of its own.
    """

    wire: Wire
    model: str
    messages: tuple[ChatMessage, ...]
    system: str = ""
    tools: tuple[ChatTool, ...] = ()
    tool_choice: ToolChoice = "auto"
    forced_tool: str | None = None
    response_schema: Mapping[str, Any] | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stream: bool = False
    trial: str = ""
    repetition: int = 1
    resample: int = 0
    headers: Mapping[str, str] = attrs.field(factory=dict, eq=False, repr=False)
    raw: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)

    def canonical(self) -> bytes:
        """Serialise what was asked, without ids, so that equal questions give equal bytes on every wire and run."""
        return orjson.dumps(
            {
                "system": self.system,
                "messages": [
                    [m.role, m.text, m.name, m.error, [[call.name, call.arguments] for call in m.calls], *m.media]
                    for m in self.messages
                ],
                "tools": [[tool.name, tool.description, tool.parameters] for tool in self.tools],
                "choice": [self.tool_choice, self.forced_tool],
                "schema": self.response_schema,
            },
            option=orjson.OPT_SORT_KEYS,
        )


@attrs.frozen
class ChatReply:
    """The model's reply: text, tool calls or both. Unset `usage` is counted by the gateway.

    `cut` is what ended the reply before its time: the limit of its length, or a refusal.
    """

    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    usage: Usage | None = None
    cut: Literal["length", "refusal"] | None = None


class ModelFault(Exception):  # noqa: N818 - it is an answer the model gives, not an error of the gateway
    """A responder raises it to answer with an HTTP error, in the protocol's own form; `retry_after` is in seconds."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


Respond: TypeAlias = Callable[[ChatRequest], ChatReply | Awaitable[ChatReply]]
"""A responder: answers requests in place of a model; may be a coroutine function, and may raise ModelFault."""

MakeResponder: TypeAlias = Callable[[int], Respond]
"""Given the run's seed, returns a responder. Group `keval.responders`."""

Observe: TypeAlias = Callable[[ChatRequest], None]
"""Told of every request that parsed, before it is answered."""


def wire_urls(base: str) -> Mapping[Wire, str]:
    """Return the base URL per wire protocol of the gateway at `base`, in the form that each vendor's SDK takes."""
    return {
        "openai-chat": f"{base}/openai/v1",
        "openai-responses": f"{base}/openai/v1",
        "anthropic": f"{base}/anthropic",
        "gemini": f"{base}/gemini",
    }
