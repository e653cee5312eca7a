"""The proxy's web application: leads a request through the middleware to its endpoint, and streams the response."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from functools import partial

import attrs
import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from keval import KevalError
from keval.plugin import (
    ASKER_HEADER,
    Endpoint,
    ModelRequest,
    ModelResponse,
    ProxyRoute,
    Wire,
    request_headers,
    response_headers,
)
from keval_clients.http import HttpClient
from keval_clients.sender import Sender
from keval_gateway.admission import admit, key_of, read_body
from keval_gateway.chat import ModelFault, wire_urls
from keval_gateway.metering import read_reply
from keval_gateway.protocols import PROTOCOLS
from keval_gateway.protocols.protocol import frame

_BASES = wire_urls("")
_MOMENT = 0.1
"""Seconds between the last that is sent of a response that broke off, and the end of the connection."""
_KEY_HEADERS: Mapping[Wire, tuple[str, str]] = {
    "openai-chat": ("authorization", "Bearer {}"),
    "openai-responses": ("authorization", "Bearer {}"),
    "anthropic": ("x-api-key", "{}"),
    "gemini": ("x-goog-api-key", "{}"),
}
"""The header in which each protocol wants the key."""


@attrs.frozen
class Way:
    """A route as the proxy knows it: by the first part of its path and by the placeholder, both unguessable."""

    route: ProxyRoute
    path: str = attrs.field(factory=lambda: secrets.token_urlsafe(18))
    token: str = attrs.field(factory=lambda: f"keval-{secrets.token_urlsafe(24)}", repr=False)

    def endpoint(self, base: str) -> Endpoint:
        """Return the endpoint to hand out, when the proxy is at `base`."""
        real, urls = self.route.endpoint, wire_urls(f"{base}/{self.path}")
        urls = {wire: urls[wire] for wire in real.urls}
        return attrs.evolve(real, urls=urls, api_key=self.token, wants_trial=True, marked_keys=True)


@attrs.frozen
class ProxyApp:
    """An ASGI application in front of several endpoints; `ways` are by the first part of their path."""

    ways: Mapping[str, Way]
    client: HttpClient

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request. A client that hangs up ends the request to the endpoint."""
        request = Request(scope, receive)
        wire: Wire = "openai-chat"
        try:
            way, wire, path = self._led(request)
            asked = ModelRequest(
                model=way.route.endpoint.model,
                wire=wire,
                method=request.method,
                path=path,
                headers=_marked(request_headers(request.headers.items()), key_of(request)),
                body=await read_body(request),
                asker=way.route.asker,
            )
        except ModelFault as fault:
            await _whole(send, _refusal(wire, fault))
            return
        except ClientDisconnect:
            return
        answering = asyncio.create_task(self._answer(way, asked, send))
        tasks = {answering, asyncio.create_task(_disconnected(receive))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not answering.cancelled():
            answering.result()

    def _led(self, request: Request) -> tuple[Way, Wire, str]:
        """Return whose request this is, the wire it speaks, and its path below the base URL of that."""
        first, _, rest = request.scope["raw_path"].decode("latin-1").removeprefix("/").partition("/")
        way = self.ways.get(first)
        token, _, _ = key_of(request).partition(".")
        admit(request, way.token if way else None, token)
        found = _wire(way.route.endpoint, f"/{rest}") if way else None
        if way is None or found is None:
            raise ModelFault(404, f"{request.method} {request.url.path} is not served here")
        wire, path = found
        # A key may stand in the query of Gemini's protocol.
        query = "&".join(part for part in request.url.query.split("&") if part.partition("=")[0] != "key")
        return way, wire, f"{path}?{query}" if query else path

    async def _answer(self, way: Way, asked: ModelRequest, send: Send) -> None:
        async with AsyncExitStack() as opened:
            try:
                response = await way.route.exchange(asked, partial(send_on, self.client, opened, way.route.endpoint))
                start = _start(response)
            except Exception as error:  # noqa: BLE001 - the seam to whatever stands behind the proxy
                response = _refusal(asked.wire, ModelFault(502, _told(error)))
                start = _start(response)
            await send(start)
            end = b"\n\n"
            meter = way.route.meter if asked.asks_for_reply and 200 <= response.status < 300 else None
            read: list[bytes] = []
            try:
                async for chunk in response.chunks:
                    if chunk:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                        end = (end + chunk)[-4:]
                        if meter is not None:
                            read.append(chunk)
            except Exception as error:
                # Too late for a status. The connection is cut, and who reads events is told why; not within one of
                # them, which would be read as a part of it.
                is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
                if is_stream and end.endswith((b"\n\n", b"\r\n\r\n")):
                    fault = ModelFault(502, f"the response broke off: {_told(error)}")
                    last = frame(PROTOCOLS[asked.wire].fault(fault), "error")
                    await send({"type": "http.response.body", "body": last, "more_body": True})
                # What was not read by then is lost with the connection.
                await asyncio.sleep(_MOMENT)
                raise
        if meter is not None:  # before the client can know that the reply has ended
            meter(asked, *read_reply(asked.wire, b"".join(read)))
        await send({"type": "http.response.body"})


def _wire(endpoint: Endpoint, path: str) -> tuple[Wire, str] | None:
    """Return the wire of a path and what follows its base; both of OpenAI's have one base."""
    found = [(wire, path.removeprefix(_BASES[wire])) for wire in endpoint.urls if path.startswith(f"{_BASES[wire]}/")]
    fitting = [(wire, rest) for wire, rest in found if (wire == "openai-responses") == rest.startswith("/responses")]
    return next(iter([*fitting, *found]), None)


def _marked(headers: dict[str, str], key: str) -> dict[str, str]:
    """Add who asks, if only the key tells; see `keval.plugin.Model.access`."""
    _, _, asker = key.partition(".")
    return {ASKER_HEADER: asker, **headers} if asker else headers


async def _disconnected(receive: Receive) -> None:
    """Wait until the client hangs up; the request's body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(response: ModelResponse) -> Message:
    headers = response_headers(response.headers.items())
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": response.status, "headers": encoded}


async def _whole(send: Send, response: ModelResponse) -> None:
    await send(_start(response))
    await send({"type": "http.response.body", "body": await response.read()})


def _refusal(wire: Wire, fault: ModelFault) -> ModelResponse:
    body = orjson.dumps(PROTOCOLS[wire].fault(fault))
    return ModelResponse.of(fault.status, {"content-type": "application/json"}, body)


def _told(error: Exception) -> str:
    """Return what failed; an explained error needs no name."""
    return str(error) if isinstance(error, KevalError) else f"{type(error).__name__}: {error}"


async def send_on(
    client: HttpClient, opened: AsyncExitStack, endpoint: Endpoint, request: ModelRequest
) -> ModelResponse:
    """Send a request to an endpoint; its response is closed with `opened`. Raises as `Sender.stream` does."""
    name, form = _KEY_HEADERS[request.wire]
    key = {name: form.format(endpoint.api_key)}
    response = await Sender.to(endpoint.urls[request.wire], key, endpoint.max_reply_bytes, client).stream(request)
    if isinstance(response.chunks, AsyncGenerator):
        opened.push_async_callback(response.chunks.aclose)
    return response
