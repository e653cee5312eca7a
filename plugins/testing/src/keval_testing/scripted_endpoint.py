"""The HTTP side of a scripted model, whose replies a test says: every wire protocol on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import attrs
from starlette import types
from starlette.types import ASGIApp, Message, Receive, Scope

from keval import Usage
from keval.records.models import Wire
from keval_gateway.app import build_app
from keval_gateway.chat import ChatCall, ChatReply, ChatRequest, ModelFault, wire_urls
from keval_loopback.serving import CLOSE, serve


@attrs.frozen
class ReceivedMessage:
    """A message of a model request: what the user or the assistant said, or the result of a tool call."""

    role: Literal["user", "assistant", "tool"]
    text: str


@attrs.frozen
class ReceivedRequest:
    """A model request as a scripted model reads it, whichever protocol the agent speaks.

    `tools` are the names that the model is offered, `headers` have names in lower case, and `raw` is the JSON body.
    """

    wire: Wire
    system: str
    messages: tuple[ReceivedMessage, ...]
    tools: tuple[str, ...]
    headers: Mapping[str, str] = attrs.field(repr=False)
    raw: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def texts(self) -> list[str]:
        """The system prompt and the texts of all messages, in order."""
        return [self.system, *(message.text for message in self.messages)]

    @property
    def key(self) -> str:
        """The API key, in whichever header the SDK sent it."""
        headers = self.headers
        bearer = headers.get("authorization", "").partition(" ")[2]
        return headers.get("x-api-key") or headers.get("x-goog-api-key") or bearer


Send: TypeAlias = Callable[[Sequence[bytes]], AsyncIterator[bytes | None]]
"""Given the pieces of a response's body, yields what is sent in their place; `None` cuts the connection."""


@attrs.frozen
class ScriptedReply:
    """What a scripted model answers a request with.

    `calls` are tools by the names that their servers give them, with arguments. `cut` is what ended the reply before
    its time. With a `status`, the endpoint refuses the request with that HTTP status and `text` as its message.
    `delay` is how many seconds the reply takes. `send` gives the body of the response another course.
    """

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    cut: Literal["length", "refusal"] | None = None
    usage: Usage | None = None
    status: int | None = None
    retry_after: float | None = None
    delay: float = 0.0
    send: Send | None = None


async def _as_it_is(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
    for piece in pieces:
        yield piece


_course: ContextVar[Callable[[Sequence[bytes]], AsyncIterator[bytes | None]]] = ContextVar("_course", default=_as_it_is)
"""How the body of the response to the current request is sent."""


@asynccontextmanager
async def serve_script(
    answer: Callable[[ReceivedRequest], Awaitable[ScriptedReply]],
) -> AsyncIterator[Mapping[Wire, str]]:
    """Serve a scripted model: yield a base URL for each protocol, at which requests are answered by `answer`."""

    async def respond(request: ChatRequest) -> ChatReply:
        messages = tuple(ReceivedMessage(message.role, message.text) for message in request.messages)
        tools = tuple(tool.name for tool in request.tools)
        reply = await answer(
            ReceivedRequest(request.wire, request.system, messages, tools, request.headers, request.raw)
        )
        if reply.status is not None:
            raise ModelFault(reply.status, reply.text, reply.retry_after)
        _course.set(reply.send or _as_it_is)
        return ChatReply(reply.text, tuple(ChatCall(*call) for call in reply.calls), reply.usage, reply.cut)

    async with serve(_Redirected(build_app(respond))) as base:
        yield wire_urls(base)


class _Redirected:
    """Sends the body of each response as its reply says."""

    def __init__(self, gateway: ASGIApp) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: types.Send) -> None:
        start: list[Message] = []
        pieces: list[bytes] = []

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
            else:
                pieces.append(message["body"])

        await self._gateway(scope, receive, keep)
        headers = [pair for pair in start[0]["headers"] if pair[0] != b"content-length"]
        await send({**start[0], "headers": headers})
        async for piece in _course.get()([piece for piece in pieces if piece]):
            if piece is None:
                scope["state"][CLOSE]()
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})
