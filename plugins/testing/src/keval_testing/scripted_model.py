"""A model endpoint on loopback whose replies a test scripts, in every protocol that agents speak."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import attrs
from starlette import types
from starlette.types import ASGIApp, Message, Receive, Scope

from keval import Usage
from keval.plugin import Endpoint, Model, Wire
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault, build_app, wire_urls
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
        # The request is answered in one task, whose context nobody else sees.
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
        # On its way the body may get another length.
        headers = [pair for pair in start[0]["headers"] if pair[0] != b"content-length"]
        await send({**start[0], "headers": headers})
        async for piece in _course.get()([piece for piece in pieces if piece]):
            if piece is None:
                scope["state"][CLOSE]()
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


Reply: TypeAlias = ScriptedReply | Callable[[ReceivedRequest], ScriptedReply | Awaitable[ScriptedReply]]
"""A reply, or a function that makes one of the request."""


def says(text: str, **rest: Any) -> ScriptedReply:
    """Return a reply that is a text: `says("It is", cut="length")`."""
    return ScriptedReply(text, **rest)


def calls_tools(*wanted: tuple[str, Mapping[str, Any]], **rest: Any) -> ScriptedReply:
    """Return a reply that calls tools: `calls_tools(("add", {"a": 2, "b": 3}), text="Let me add.")`."""
    return ScriptedReply(calls=wanted, **rest)


def refuses(status: int, message: str = "not today", retry_after: float | None = None) -> ScriptedReply:
    """Return a refusal of the endpoint: `refuses(429, retry_after=7)`."""
    return ScriptedReply(message, status=status, retry_after=retry_after)


# A status after which no SDK asks again.
_AT_ITS_END = ScriptedReply("the script of this model has no further reply", status=400)


@attrs.define(eq=False)
class Script:
    """The replies for whoever asks `model`, in order; `requests` are those that came."""

    model: Model
    _replies: Iterator[Reply]
    requests: list[ReceivedRequest] = attrs.field(factory=list, init=False)

    async def answer(self, request: ReceivedRequest) -> ScriptedReply:
        """Return the next reply, with its tools under the names that the agent offers them by."""
        self.requests.append(request)
        made = next(self._replies, _AT_ITS_END)
        if not isinstance(made, ScriptedReply):
            answered = made(request)
            made = answered if isinstance(answered, ScriptedReply) else await answered
        await asyncio.sleep(made.delay)
        named = tuple((offered_name(tool, request.tools), arguments) for tool, arguments in made.calls)
        return attrs.evolve(made, calls=named)


@attrs.define(eq=False)
class ScriptedModel:
    """A server of scripts; each has an API key of its own, so that late requests of one are not another's."""

    _urls: Mapping[Wire, str] = attrs.field(factory=dict, init=False)
    _scripts: dict[str, Script] = attrs.field(factory=dict, init=False)

    @classmethod
    @asynccontextmanager
    async def serve(cls) -> AsyncIterator[ScriptedModel]:
        """Serve in the loop that is running."""
        served = cls()
        async with serve_script(served._answer) as served._urls:
            yield served

    @classmethod
    @contextmanager
    def serve_in_thread(cls) -> Iterator[ScriptedModel]:
        """Serve in a thread of its own, for tests without a loop; functions among the replies are called there."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="scripted model")
        thread.start()
        try:
            serving = cls.serve()
            served = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
            try:
                yield served
            finally:
                asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def __call__(self, *replies: Reply) -> Script:
        """Return a script of these replies."""
        return self.script(replies)

    def script(self, replies: Iterable[Reply]) -> Script:
        """Return a script of replies, of which there may be no end."""
        key = f"scripted-key-{len(self._scripts):04}"
        model = Model("scripted", "model", Endpoint("model", self._urls, key, simulated=True, wants_trial=True))
        script = self._scripts[key] = Script(model, iter(replies))
        return script

    async def _answer(self, request: ReceivedRequest) -> ScriptedReply:
        script = self._scripts.get(request.key)
        return await script.answer(request) if script else refuses(401, "send the key of the model that you were given")


def offered_name(tool: str, offered: Iterable[str]) -> str:
    """Return the name by which an agent offers a server's tool; many a framework puts the server's name before it."""
    names = [*offered]
    return tool if tool in names else next((name for name in names if name.endswith(f"_{tool}")), tool)
