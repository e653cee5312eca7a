"""The gateway's web application: every wire protocol on one loopback port, in front of one responder."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import attrs
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from keval_gateway.admission import admit, check_schemas, read_body
from keval_gateway.chat import ChatReply, ChatRequest, ModelFault, Observe, Respond
from keval_gateway.protocols import WireProtocol
from keval_gateway.protocols.anthropic import AnthropicMessages
from keval_gateway.protocols.gemini import GeminiContent
from keval_gateway.protocols.openai import OpenAIChat, OpenAIResponses
from keval_gateway.protocols.protocol import complete

_log = logging.getLogger(__name__)
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_WATCHED = "x-keval-watched"
"""The header with which keval says that somebody reads the answer as it is written."""
_GEMINI_CALLS = {"generateContent": False, "streamGenerateContent": True}
_Prepare: TypeAlias = Callable[[Request, Mapping[str, Any]], Mapping[str, Any]]


def build_app(
    respond: Respond,
    *,
    token: str | None = None,
    observe: Observe | None = None,
    pause: float = 0.0,
) -> Starlette:
    """Return the application that answers every protocol with `respond`.

    With `token`, it must come as the API key, in any of the forms the SDKs send one. `observe` is told of every
    request before it is answered. `pause` is how many seconds pass between the events of an answer that is streamed to
    somebody who watches, as the header `x-keval-watched` says; without it they are sent at once.
    """
    gate = _Gate(respond, token, observe, pause)
    chat, responses, anthropic, gemini = OpenAIChat(), OpenAIResponses(), AnthropicMessages(), GeminiContent()
    return Starlette(
        routes=[
            Route("/openai/v1/chat/completions", gate.endpoint(chat), methods=["POST"]),
            Route("/openai/v1/responses", gate.endpoint(responses), methods=["POST"]),
            Route("/anthropic/v1/messages", gate.endpoint(anthropic), methods=["POST"]),
            Route("/gemini/{version}/models/{call:path}", gate.endpoint(gemini, _gemini_body), methods=["POST"]),
            # What is not served is refused in the form that the SDK of the path's vendor reads.
            Route("/openai/{rest:path}", gate.endpoint(chat, _not_found), methods=_METHODS),
            Route("/anthropic/{rest:path}", gate.endpoint(anthropic, _not_found), methods=_METHODS),
            Route("/{rest:path}", gate.endpoint(gemini, _not_found), methods=_METHODS),
        ]
    )


def _not_found(request: Request, body: Mapping[str, Any]) -> Mapping[str, Any]:
    raise ModelFault(
        404,
        f"{request.method} {request.url.path} is not served here; base URLs end in /openai/v1, /anthropic or /gemini",
    )


def _gemini_body(request: Request, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add what Gemini puts into the URL: the model and whether to stream."""
    model, _, method = request.path_params["call"].rpartition(":")
    if method not in _GEMINI_CALLS:
        return _not_found(request, body)
    stream = _GEMINI_CALLS[method]
    if stream and request.query_params.get("alt") != "sse":
        raise ModelFault(400, "streamGenerateContent is served as server-sent events only; add ?alt=sse")
    return {**body, "model": model, "stream": stream}


@attrs.frozen
class _Gate:
    """What every endpoint does, whatever its protocol: admit, read, answer, and turn a fault into a response."""

    respond: Respond
    token: str | None
    observe: Observe | None
    pause: float

    def endpoint(self, wire: WireProtocol, prepare: _Prepare | None = None) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                admit(request, self.token)
                return await self._answer(wire, await _read(wire, request, prepare))
            except ModelFault as fault:
                return _refusal(wire, fault)
            except Exception as error:  # noqa: BLE001 - the seam to whatever stands behind the gateway
                _log.exception("the responder failed")
                return _refusal(wire, ModelFault(500, f"the gateway's responder failed: {error!r}"))

        return answer

    async def _answer(self, wire: WireProtocol, asked: ChatRequest) -> Response:
        if self.observe is not None:
            self.observe(asked)
        reply = self.respond(asked)
        if inspect.isawaitable(reply):
            reply = await reply
        if not isinstance(reply, ChatReply):
            raise ModelFault(500, f"the gateway's responder returned the type {type(reply).__name__}, not a ChatReply")
        answer = complete(asked, reply, int(time.time()))
        if asked.stream:
            pause = self.pause if _WATCHED in asked.headers else 0.0
            return StreamingResponse(_each(wire.events(asked, answer), pause), media_type="text/event-stream")
        return _json(wire.render(asked, answer))


async def _read(wire: WireProtocol, request: Request, prepare: _Prepare | None) -> ChatRequest:
    content = await read_body(request)
    try:
        body = orjson.loads(content) if content else {}
    except orjson.JSONDecodeError as error:
        raise ModelFault(400, f"the request's body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ModelFault(400, "the request's body must be a JSON object")
    body = prepare(request, body) if prepare is not None else body
    try:
        asked = wire.parse(body)
        check_schemas(asked)
        repetition = int(request.headers.get("x-keval-repetition", "1"))
        resample = int(request.headers.get("x-keval-resample", "0"))
    except KeyError as error:
        raise ModelFault(400, f"the request lacks {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelFault(400, f"the request does not have the protocol's shape: {error}") from error
    trial, headers = unquote(request.headers.get("x-keval-trial", "")), dict(request.headers)
    return attrs.evolve(asked, trial=trial, repetition=repetition, resample=resample, headers=headers)


def _refusal(wire: WireProtocol, fault: ModelFault) -> Response:
    headers = {} if fault.retry_after is None else {"retry-after": str(math.ceil(fault.retry_after))}
    return _json(wire.fault(fault), fault.status, headers)


def _json(body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status, headers, "application/json")


async def _each(frames: Iterator[bytes], pause: float) -> AsyncIterator[bytes]:
    """Hand out a plain iterator asynchronously; Starlette would run it in a thread, one hop per event."""
    for each in frames:
        yield each
        if pause:
            await asyncio.sleep(pause)
