"""The server in front of LiteLLM: each protocol's requests go through LiteLLM's own function for that protocol."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any

import attrs
import litellm
import orjson
from litellm.anthropic_interface import messages as anthropic_messages
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from keval.records.models import Wire
from keval_gateway.admission import admit, read_body
from keval_gateway.chat import ModelFault, wire_urls
from keval_gateway.protocols import PROTOCOLS
from keval_gateway.protocols.protocol import frame
from keval_litellm.bounded import UnusableReplyError
from keval_litellm.provider import ANY

_MESSAGES = """
    cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model
    output_config output_format service_tier speed stop_sequences stream system temperature thinking tool_choice tools
    top_k top_p
"""
_MESSAGES_FIELDS = frozenset(_MESSAGES.split())
"""The fields of a request of Anthropic's Messages API, of which there is no list in a package that LiteLLM requires."""
_FOR_THE_VENDOR = frozenset({"metadata", "store"})
"""Fields about what OpenAI keeps of a request; LiteLLM has another meaning for the first."""
_CLIENT_GONE = 499
"""The status of a response that nobody waits for."""
_EVENTS = "text/event-stream"


@attrs.frozen
class _Protocol:
    """One protocol: its path, LiteLLM's function, and the fields that a request may have.

    LiteLLM takes more arguments than a protocol has fields: addresses, credentials, retries. None of them may come in a
    request. `end` is what follows the last event of a stream.
    """

    wire: Wire
    path: str
    ask: Callable[..., Awaitable[Any]]
    fields: frozenset[str]
    ignored: frozenset[str] = frozenset()
    end: bytes = b""


_PROTOCOLS = (
    _Protocol(
        "openai-chat",
        "/chat/completions",
        litellm.acompletion,
        # OpenAI's SDK has `stream` in the subclasses, where its type differs.
        frozenset(CompletionCreateParamsBase.__annotations__) | {"stream"},
        _FOR_THE_VENDOR,
        b"data: [DONE]\n\n",
    ),
    _Protocol(
        "openai-responses",
        "/responses",
        litellm.aresponses,
        frozenset(ResponseCreateParamsBase.__annotations__) | {"stream"},
        _FOR_THE_VENDOR,
    ),
    _Protocol("anthropic", "/v1/messages", anthropic_messages.acreate, _MESSAGES_FIELDS),
)


def build_app(provider: str, token: str) -> Starlette:
    """Return the application that answers with a provider's models; `token` must come as the API key."""
    litellm.num_retries = 0  # keval repeats requests, in one place
    litellm.suppress_debug_info = True
    litellm.drop_params = False  # a parameter that a model does not take is refused, not left out
    bases = wire_urls("")
    return Starlette(
        routes=[
            Route(bases[each.wire] + each.path, _Served(provider, token, each).answer, methods=["POST"])
            for each in _PROTOCOLS
        ]
    )


@attrs.frozen
class _Served:
    """One protocol of one provider."""

    provider: str
    token: str
    protocol: _Protocol

    async def answer(self, request: Request) -> Response:
        """Admit a request, have LiteLLM answer it, and turn what it raises into the protocol's error."""
        try:
            admit(request, self.token)
            asked = self._arguments(await read_body(request))
            reply = await _unless_gone(request, self._reply(asked))
        except ModelFault as fault:
            return self._refusal(fault, {})
        except Exception as error:  # noqa: BLE001 - the seam to LiteLLM, which has an error for each refusal
            return self._refusal(_fault(error), _retry_after(error))
        return reply

    def _arguments(self, content: bytes) -> dict[str, Any]:
        """Return a request's body as LiteLLM's arguments. Raises ModelFault."""
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise ModelFault(400, f"the request's body is not JSON: {error}") from error
        if not isinstance(body, dict) or not isinstance(body.get("model"), str):
            raise ModelFault(400, "the request's body must be a JSON object with a model")
        if unknown := body.keys() - self.protocol.fields:
            raise ModelFault(400, f"keval-litellm does not pass on {', '.join(sorted(unknown))}; leave it out")
        given = {name: value for name, value in body.items() if name not in self.protocol.ignored}
        if self.provider != ANY:
            given["model"] = f"{self.provider}/{body['model']}"
        if "seed" in given and "seed" not in (litellm.get_supported_openai_params(given["model"]) or ()):
            del given["seed"]  # a vendor promises no more than to try, and frameworks send one always
        return given

    async def _reply(self, asked: dict[str, Any]) -> Response:
        streamed = asked.get("stream") is True
        if self.protocol.wire == "anthropic":
            # LiteLLM's own stream of it sends a status of 200 before the provider has answered, and for Anthropic's
            # models needs packages of its proxy.
            message = await self._ask({**asked, "stream": False})
            if not streamed:
                return _json_response(_json(message))
            return Response(b"".join(frame(each, each["type"]) for each in message_events(message)), media_type=_EVENTS)
        reply = await self._ask(asked)
        if not streamed:
            return _json_response(_json(reply))
        arriving = aiter(reply)
        # The first event is awaited here, as a provider may refuse only then.
        first = await anext(arriving, None)
        return StreamingResponse(self._stream(first, arriving), media_type=_EVENTS)

    async def _ask(self, asked: Mapping[str, Any]) -> Any:
        return await self.protocol.ask(**asked, **_address(asked["model"]), num_retries=0, max_retries=0)

    async def _stream(self, first: Any, arriving: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        try:
            if first is not None:
                yield _event(first)
            async for event in arriving:
                yield _event(event)
        except Exception as error:
            # Too late for a status: the reader is told, and the connection is cut.
            yield frame(PROTOCOLS[self.protocol.wire].fault(_fault(error)), "error")
            raise
        yield self.protocol.end

    def _refusal(self, fault: ModelFault, headers: Mapping[str, str]) -> Response:
        body = orjson.dumps(PROTOCOLS[self.protocol.wire].fault(fault))
        return _json_response(body, fault.status, headers)


def _event(event: Any) -> bytes:
    """Write an event of a stream of OpenAI's; those of Responses have a type, which is their name, too."""
    kind = getattr(event, "type", None)
    # An enumeration's value, as it is written.
    name = f"event: {getattr(kind, 'value', kind)}\n".encode() if kind else b""
    return name + b"data: " + _json(event) + b"\n\n"


def _json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status, headers, "application/json")


def _address(model: str) -> dict[str, str]:
    """Return the address that the environment names where not all of LiteLLM's functions read it themselves."""
    url = os.environ.get("VERTEXAI_API_BASE") if model.startswith("vertex_ai") else None
    return {"api_base": url} if url else {}


def _json(reply: Any) -> bytes:
    """Write a reply, which is a record of pydantic or a dictionary."""
    if hasattr(reply, "model_dump_json"):
        text: str = reply.model_dump_json()
        return text.encode()
    return orjson.dumps(reply)


def _fault(error: Exception) -> ModelFault:
    """Return what a request is refused with, by the status and the message of LiteLLM's error."""
    # LiteLLM raises errors of its own in place of what is raised below it.
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UnusableReplyError):
            return ModelFault(400, str(cause))
        cause = cause.__cause__ or cause.__context__
    status = getattr(error, "status_code", None)
    # It adds tracebacks to messages, and advice to set `drop_params`, which is off on purpose.
    told = re.split(r"\nTraceback \(most recent call last\)| To drop these, set", str(error))[0]
    return ModelFault(status if isinstance(status, int) and 400 <= status < 600 else 500, told)


def _retry_after(error: Exception) -> dict[str, str]:
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        if headers and (value := headers.get("retry-after")):
            return {"retry-after": str(value)}
    return {}


async def _unless_gone(request: Request, reply: Coroutine[Any, Any, Response]) -> Response:
    """Await a reply; if the client hangs up before, end the request to the provider."""
    asking, gone = asyncio.create_task(reply), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await asking if asking.done() else Response(status_code=_CLIENT_GONE)
    finally:
        for task in (asking, gone):
            task.cancel()
        await asyncio.wait({asking, gone})


async def _disconnected(request: Request) -> None:
    """Wait until the client hangs up; the request's body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def message_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream that bring a whole message, each block in one piece."""
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(message["content"]):
        start: Mapping[str, Any] = block
        deltas: list[dict[str, Any]] = []
        match block:
            case {"type": "text", "text": text}:
                start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": text}]
            case {"type": "tool_use", "input": given}:
                partial = {"type": "input_json_delta", "partial_json": orjson.dumps(given).decode()}
                start, deltas = {**block, "input": {}}, [partial]
            case {"type": "thinking", "thinking": thought, **others}:
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": thought}]
                if signature := others.get("signature"):
                    deltas.append({"type": "signature_delta", "signature": signature})
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ending, "usage": message["usage"]}
    yield {"type": "message_stop"}
