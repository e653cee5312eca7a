"""The proxy's web application: leads a request through the middleware to its endpoint, and streams the response."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import attrs
import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from keval import Usage
from keval.errors import ModelError, PluginWarning
from keval.execute.models.denials import read_refusal
from keval.execute.models.reply_usage import usage_in
from keval.records.models import (
    ASKER_HEADER,
    Endpoint,
    ModelRequest,
    ModelResponse,
    Next,
    Wire,
    request_headers,
    response_headers,
)
from keval.seams.finish_reason import CONTEXT_WINDOW, MAX_OUTPUT_TOKENS, REFUSAL, FinishReason
from keval.seams.infrastructure import AttemptKey, ProxyRoute
from keval_clients.completions import CONVERSATION, WANTS_THOUGHT, events_for_framework, for_framework, put_back
from keval_clients.http import HttpClient
from keval_clients.replies import UNREACHED, what_failed
from keval_clients.sender import Sender
from keval_gateway.admission import admit, key_of, read_body
from keval_gateway.chat import ModelFault, wire_urls
from keval_gateway.protocols import PROTOCOLS
from keval_gateway.protocols.protocol import frame
from keval_gateway.rules import PASSED_HEADERS, ReplyCall, decide, model_name, wire_of
from keval_loopback.serving import disconnected

_MOMENT = 0.1
"""Seconds between the last that is sent of a response that broke off, and the end of the connection."""
_JSON = {"content-type": "application/json"}
_WAY_OUT = (
    "the framework leaves out what the model thought before it called a tool: take the agent `openai`, or"
    " `api: responses` or `anthropic` if the provider has it"
)
_LONG = 1_000_000
"""Bytes of a body from which on it is read beside the event loop."""


@attrs.frozen
class Way:
    """A route as the proxy knows it: by the first part of its path and by the placeholder, both unguessable.

    `others` are the routes of the same asker by the names of their models, which may be asked at this path, too.
    """

    route: ProxyRoute
    others: Mapping[str, ProxyRoute] = attrs.field(factory=dict)
    path: str = attrs.field(factory=lambda: secrets.token_urlsafe(18))
    token: str = attrs.field(factory=lambda: f"keval-{secrets.token_urlsafe(24)}", repr=False)

    def endpoint(self, base: str) -> Endpoint:
        """Return the endpoint to hand out, when the proxy is at `base`."""
        real, urls = self.route.endpoint, wire_urls(f"{base}/{self.path}")
        urls = {wire: urls[wire] for wire in real.urls}
        return attrs.evolve(real, urls=urls, api_key=self.token, wants_trial=True, attempt_keys=True, platform=None)

    @property
    def models(self) -> Mapping[str, ProxyRoute]:
        """The routes by the names of their models."""
        return {**self.others, model_name(self.route.endpoint.model): self.route}

    def admit(self, request: Request) -> AttemptKey | None:
        """Return the attempt that a program's key is of; `None` is a request of code in keval's own process.

        Raises ModelFault: the key is neither.
        """
        key = key_of(request)
        if hmac.compare_digest(key.encode(), self.token.encode()):
            return None
        found = self.route.find_key(key)
        if found is None:
            raise ModelFault(401, "the API key is of no attempt that is under way; hand on the one that was given")
        return found


@attrs.frozen
class ProxyApp:
    """An ASGI application in front of several endpoints; `ways` are by the first part of their path.

    `wants_thoughts` has the names of models that refused a conversation without what they thought.
    """

    ways: Mapping[str, Way]
    client: HttpClient
    wants_thoughts: set[str] = attrs.field(factory=set)
    _senders: dict[tuple[int, Wire], Sender] = attrs.field(factory=dict, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request. A client that hangs up ends the request to the endpoint."""
        request = Request(scope, receive)
        wire: Wire = "openai-chat"
        key: AttemptKey | None = None
        # As it was sent: the rules must read the path that the endpoint would read.
        first, _, rest = request.scope["raw_path"].decode("latin-1").removeprefix("/").partition("/")
        try:
            # Host and Origin alone; which keys are right depends on the way.
            admit(request, None)
            way = self.ways.get(first)
            if way is None:
                raise ModelFault(404, f"{request.method} {request.url.path} is not served here")
            wire = wire_of(f"/{rest}")
            key = way.admit(request)
            body = await read_body(request)
            models = way.models
            wires = {name: route.endpoint.urls.keys() for name, route in models.items()}
            deciding = partial(decide, request.method, f"/{rest}", request.url.query, body, wires)
            found = await asyncio.to_thread(deciding) if len(body) > _LONG else deciding()
            way.admit(request)  # the attempt may have ended while the body was read
        except ModelFault as fault:
            # A program may ask for a model that is not listed, to see whether it is there: that is nothing to tell of.
            if key is not None and fault.status != 404:
                key.denied(f"{request.method} /{rest}", fault.message)
            await _whole(send, _refusal(wire, fault))
            return
        except ClientDisconnect:
            return
        if not isinstance(found, ReplyCall):
            await _whole(send, ModelResponse.of(200, _JSON, orjson.dumps(found)))
            return
        route, headers = models[found.model], request_headers(request.headers.items())
        if key is not None:  # of a program's headers, what is passed on, and who asks, which the key alone tells
            kept = {name: value for name, value in headers.items() if name in PASSED_HEADERS}
            headers = {**kept, **_JSON, ASKER_HEADER: key.value}
        asked = ModelRequest(
            model=route.endpoint.model,
            wire=found.wire,
            method=request.method,
            path=found.path,
            headers=headers,
            body=body,
            asker=route.asker,
        )
        framework = None
        if key is None:
            framework = route.attempt_of(headers.get(ASKER_HEADER, "")) or AttemptKey("")
        answering = asyncio.create_task(self._answer(route, asked, send, framework, streams=found.streams))
        if key is not None:
            # The attempt waits for it when it ends, so that what the reply cost counts for the attempt.
            key.in_flight.add(answering)
            answering.add_done_callback(key.in_flight.discard)
        tasks = {answering, asyncio.create_task(disconnected(receive))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        # An error goes on to the web server, which cuts the connection.
        if not answering.cancelled():
            answering.result()

    async def _answer(
        self, route: ProxyRoute, asked: ModelRequest, send: Send, framework: AttemptKey | None, *, streams: bool
    ) -> None:
        async with AsyncExitStack() as opened:
            try:
                sender = self._sender(route.endpoint, asked.wire)
                sending = partial(sender.send, opened=opened.push_async_callback, streams=True)
                if framework is not None:
                    response = await self._for_framework(route, asked, sending, framework)
                else:  # a program reads what the vendor writes, as it does without keval
                    response = await route.exchange(asked, sending)
                if streams:
                    response = await _as_stream(asked.wire, response)
                start = _start(response)
            except Exception as error:  # noqa: BLE001 - the seam to whatever stands behind the proxy
                response = _refusal(asked.wire, ModelFault(502, what_failed(error)))
                if isinstance(error, ModelError) and error.status is None:
                    response.headers = {**response.headers, UNREACHED: "true"}
                start = _start(response)
            end = b"\n\n"
            meter = route.meter if 200 <= response.status < 300 else None
            read: list[bytes] = []
            whole = False
            try:
                await send(start)
                async for chunk in response.chunks:
                    if chunk:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                        # Enough to know an event's end, also where it comes in two chunks.
                        end = (end + chunk)[-4:]
                        if meter is not None:
                            read.append(chunk)
                whole = True
            except Exception as error:
                # Too late for a status. The connection is cut, and who reads events is told why; not within one of
                # them, which would be read as a part of it.
                is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
                if is_stream and end.endswith((b"\n\n", b"\r\n\r\n")):
                    fault = ModelFault(502, f"the response broke off: {what_failed(error)}")
                    last = frame(PROTOCOLS[asked.wire].fault(fault), "error")
                    await send({"type": "http.response.body", "body": last, "more_body": True})
                # What was not read by then is lost with the connection.
                await asyncio.sleep(_MOMENT)
                raise
            finally:  # also where the client hangs up; and before it can know that the reply has ended
                if meter is not None:
                    meter(asked, *read_reply(asked.wire, b"".join(read), whole=whole))
        await send({"type": "http.response.body"})

    def _sender(self, there: Endpoint, wire: Wire) -> Sender:
        key = id(there), wire  # of a route, which lives as long as this
        if key not in self._senders:
            self._senders[key] = Sender.to(there.urls[wire], there, self.client)
        return self._senders[key]

    async def _for_framework(
        self, route: ProxyRoute, asked: ModelRequest, send: Next, key: AttemptKey
    ) -> ModelResponse:
        """Ask, note what the reply cost, and write one of Chat Completions in the form that the protocol documents.

        Where the endpoint wants back what the model thought, which frameworks leave out, that is put back.
        """
        model, sent = route.endpoint.model, asked
        if key.thoughts and model in self.wants_thoughts:
            sent = attrs.evolve(asked, body=put_back(key.thoughts, asked.wire, asked.body))
        response = await route.exchange(sent, send)
        refused = asked.wire in CONVERSATION and response.status == 400 and WANTS_THOUGHT.search(await response.read())
        if refused and key.thoughts and model not in self.wants_thoughts:
            self.wants_thoughts.add(model)
            told = f"{model!r} wants back what it thought before it called a tool, which {asked.asker.label} leaves out"
            warnings.warn(f"{told}; keval puts it back", PluginWarning, stacklevel=2)
            return await self._for_framework(route, asked, send, key)
        if refused:
            said = read_refusal(400, await response.read()).text
            return _refusal(asked.wire, ModelFault(400, f"{said}; {_WAY_OUT}"))
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if asked.wire == "openai-chat" and is_stream:
            response.chunks = events_for_framework(response.chunks)
        elif response.status == 200 and response.size:
            body = await response.read()
            usage = usage_in(asked.wire, _objects(body)[0]) if b'cost"' in body else None
            key.costs.append(None if usage is None else usage.cost)
            if asked.wire in CONVERSATION:
                return ModelResponse.of(
                    200, response.headers, for_framework(asked.wire, asked.body, body, key.thoughts)
                )
        return response


def models_beside(route: ProxyRoute, routes: Iterable[ProxyRoute]) -> Mapping[str, ProxyRoute]:
    """Return the other routes of an asker by the names of their models."""
    return {model_name(each.endpoint.model): each for each in routes if each.asker == route.asker and each is not route}


async def _as_stream(wire: Wire, response: ModelResponse) -> ModelResponse:
    """Return a reply as a stream, also where the endpoint does not know how to stream; clients read nothing else."""
    if response.status != 200 or response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return response
    try:
        body = b"".join(PROTOCOLS[wire].streamed(orjson.loads(await response.read())))
    except (AttributeError, LookupError, TypeError, ValueError):  # an error, or no reply of the protocol
        return response
    return ModelResponse.of(200, {**response.headers, "content-type": "text/event-stream"}, body)


def _start(response: ModelResponse) -> Message:
    headers = response_headers(response.headers.items())
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": response.status, "headers": encoded}


async def _whole(send: Send, response: ModelResponse) -> None:
    await send(_start(response))
    await send({"type": "http.response.body", "body": await response.read()})


def _refusal(wire: Wire, fault: ModelFault) -> ModelResponse:
    return ModelResponse.of(fault.status, _JSON, orjson.dumps(PROTOCOLS[wire].fault(fault)))


def read_reply(wire: Wire, body: bytes, *, whole: bool = True) -> tuple[Usage, FinishReason | None]:
    """Return the tokens that a reply says it took, and what ended it before its time, if anything did.

    `body` is the whole body of a successful response: a JSON object, or server-sent events. What it does not tell of
    its tokens is unknown. If it is not the `whole` body, what it tells before its end is not all of its output.
    """
    events, unread = _objects(body)
    finished: FinishReason | None = None
    ended = whole or wire in ("openai-chat", "openai-responses")  # which tell all tokens at the end
    for data in events:
        reason = _ENDED[wire](data)
        finished = _FINISHED.get(reason, finished)
        ended = ended or bool(reason)
    usage = usage_in(wire, events) or Usage(impossible="no JSON" if whole and unread else None)
    return usage if ended else attrs.evolve(usage, output_tokens=None), finished


def _objects(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects in a body, and whether any of it could not be read."""
    lines = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")]
    found, unread = [], False
    for text in lines or [body]:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:  # as for a count that no number can hold
            unread = unread or text.strip() != b"[DONE]"  # which ends OpenAI's streams
            continue
        # Gemini's API streams a list of replies where nobody asks for events.
        found += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    return found, unread


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_FINISHED: Mapping[str, FinishReason] = {
    **dict.fromkeys(("length", "max_output_tokens", "max_tokens", "MAX_TOKENS"), MAX_OUTPUT_TOKENS),
    **dict.fromkeys(("content_filter", "refusal"), REFUSAL),
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"), REFUSAL),
    "model_context_window_exceeded": CONTEXT_WINDOW,
}
"""The words of all protocols for an end before the time; none means another thing in another protocol."""
_ENDED: Mapping[Wire, Callable[[Mapping[str, Any]], str]] = {
    "openai-chat": lambda data: _text(_first(data.get("choices")).get("finish_reason")),
    "openai-responses": lambda data: _text(
        _mapping((_mapping(data.get("response")) or data).get("incomplete_details")).get("reason")
    ),
    "anthropic": lambda data: _text((_mapping(data.get("delta")) or data).get("stop_reason")),
    "gemini": lambda data: _text(_first(data.get("candidates")).get("finishReason")),
}
