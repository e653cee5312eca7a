"""Sends model requests as a provider takes them, signed in, and returns the responses."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

import attrs
import orjson
from yarl import URL

from keval.errors import ModelError
from keval.records.models import Endpoint, ModelRequest, ModelResponse, request_headers, response_headers
from keval_clients.http import HttpClient
from keval_clients.network import key_header

Close: TypeAlias = Callable[[], Awaitable[None]]
"""Closes what was opened for a response."""


def model_client(urls: Iterable[str]) -> HttpClient:
    """Return a client for models at these URLs. Raises PreflightError: the environment's variables cannot be used."""
    client = HttpClient("the model's endpoint", "model", _unreached)
    for url in urls:
        client.reach(url)
    return client


_STARTS = {
    "11434": "`ollama serve` starts Ollama",
    "1234": "`lms server start` starts that of LM Studio",
    "8080": "start the llamafile, as by `./NAME.llamafile --server`",
    "8000": "`vllm serve MODEL` starts vLLM",
}
"""What starts a model server on this machine, by the port that it takes by default."""


def _unreached(message: str) -> ModelError:
    """Return the error for an endpoint that gave no answer; of a server here that is not there, with what starts it."""
    refused = re.search(r"Connect call failed \('(?:127\.0\.0\.1|::1)', (\d+)", message)
    start = _STARTS.get(refused[1]) if refused else None
    return ModelError(f"{message}; {start}" if start else message)


def base_url(url: str) -> str:
    """Return a base URL as paths follow it: without a query, and without a slash at its end."""
    return str(URL(url).with_query(None)).rstrip("/")


@attrs.frozen(eq=False)
class Sender:
    """Sends requests to an endpoint's base URL of one protocol, or of two that share one.

    A longer reply than the endpoint's `max_reply_bytes`, unpacked, raises TrialError of kind `reply_too_large` and is
    read no further.
    """

    _endpoint: Endpoint
    _base: str
    _query: str
    _http: HttpClient
    _path: str = ""

    @classmethod
    def to(cls, url: str, endpoint: Endpoint, http: HttpClient | None = None) -> Sender:
        """Return a sender to a base URL, which shares `http` with others if that is given.

        Every request gets the URL's query, if it has one. Raises PreflightError: the environment's variables cannot be
        used.
        """
        address = URL(url)
        path = address.raw_path.rstrip("/")
        return cls(endpoint, base_url(url), address.raw_query_string, http or model_client([url]), path)

    async def send(
        self, request: ModelRequest, opened: Callable[[Close], object] | None = None, *, streams: bool = False
    ) -> ModelResponse:
        """Send a request and read the whole reply; a stream of events, or all if it `streams`, passes as it arrives.

        `opened` is given what closes that. Where the endpoint refuses a field without which the request asks for
        the same, it is sent once more without, and so are all later ones to this endpoint. One that cannot be signed in
        is answered with status 401.

        Raises:
            ModelError: the endpoint cannot be reached, or broke off. A stream raises that when it is read.
            TrialError: kind `reply_too_large`, or `redirected`.
        """
        known = self._endpoint.refused.setdefault(request.wire, {})
        response = None
        if not known:
            response = await self._sent(request, opened, streams=streams)
            if response.status not in (400, 422):
                return response
        from keval_clients.fields import send_without  # most endpoints refuse none

        return await send_without(known, request, response, partial(self._sent, opened=opened, streams=streams))

    async def _sent(
        self, request: ModelRequest, opened: Callable[[Close], object] | None, *, streams: bool
    ) -> ModelResponse:
        endpoint, platform = self._endpoint, self._endpoint.platform
        if platform is not None:
            request = platform.adapt(request)
        url = self._base + request.path
        if self._query:
            url += ("&" if "?" in request.path else "?") + self._query
        if platform is None:
            signed = key_header(request.wire, endpoint.api_key)
        else:
            try:
                signed = await platform.sign(request, url)
            except ModelError as error:  # which ends a run as a wrong key does, and is not waited for as an outage is
                told = orjson.dumps({"error": {"message": str(error)}})
                return ModelResponse.of(401, {"content-type": "application/json"}, told)
        reply = await self._http.ask(
            request.method,
            url,
            {**request_headers(request.headers.items()), **signed},
            request.body or None,
            most=endpoint.max_reply_bytes,
        )
        headers = response_headers(reply.headers.items())
        if streams or headers.get("content-type", "").lower().startswith("text/event-stream"):
            chunks = reply.pieces()
            if opened is not None:
                opened(chunks.aclose)
            return ModelResponse(reply.status, headers, chunks)
        return ModelResponse.of(reply.status, headers, await reply.read())

    def below(self, path: str) -> str:
        """Return a path, as it is sent, relative to the base URL."""
        return path.removeprefix(self._path)

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._http.aclose()
