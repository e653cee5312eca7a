"""The transport below a vendor's SDK: requests go through the middleware of a run, and are sent by aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import httpx2

from keval.records.models import Endpoint, ModelRequest, ModelResponse, Wire, request_headers
from keval_clients.sender import Close, Sender

_AS_AIOHTTP = "utf-8", "surrogateescape"
"""How aiohttp reads the headers of a reply."""
_TELEMETRY = "x-stainless-"
_GIVEN = "keval"
_CLOSED = {"http_version": b"HTTP/2"}
"""Has OpenAI's SDK close a stream after `[DONE]`: it would read on, and fail if the connection breaks there."""


class CheapRequests:
    """Beside an SDK's class: the same URLs are read once, and nothing is told of the machine.

    Both would take a third of the SDK's part of a request. Where an SDK no longer asks these, it is slower, and right.
    """

    @cached_property
    def _known_urls(self) -> dict[str, httpx2.URL]:
        return {}

    def platform_headers(self) -> dict[str, str]:
        """Return no headers with the system, the processor and the version of Python."""
        return {}

    def _prepare_url(self, url: str) -> httpx2.URL:
        if url not in self._known_urls:
            self._known_urls[url] = super()._prepare_url(url)  # type: ignore[misc]
        return self._known_urls[url]


class ModelTransport(httpx2.AsyncClient):
    """The HTTP client of an SDK: hands each request to the endpoint's `exchange`, if it has one, and then to a sender.

    `wire` tells the protocol of a request by its path below the base URL. Headers that are `left_out`, and what the SDK
    tells its vendor of this machine, are not passed on: the former are the SDK's own reading of the environment, and
    the endpoint's provider says what is sent of that.

    httpx2's own client would read each URL and header several times over, which costs as much as the SDK does. The SDKs
    call `build_request` and `send` alone.
    """

    def __init__(self, url: str, endpoint: Endpoint, wire: Callable[[str], Wire], left_out: Iterable[str]) -> None:
        # Without a transport of its own it would prepare connections, which takes 30 ms.
        super().__init__(transport=httpx2.AsyncBaseTransport(), trust_env=False)
        self._endpoint, self._wire, self._left_out = endpoint, wire, frozenset(left_out)
        self._sender = Sender.to(url, endpoint)
        self._known: dict[str, tuple[httpx2.Request, str]] = {}

    def build_request(self, method: str, url: Any, *, headers: Any = None, content: Any = None, **_: Any) -> Any:
        """Return the request, with its headers as the SDK gave them."""
        if url not in self._known:
            first = httpx2.Request(method, url)
            self._known[url] = first, self._sender.below(first.url.raw_path.decode("ascii"))
        first, path = self._known[url]
        # Made as the first of its URL was: the SDK looks at little more than its method.
        request = httpx2.Request.__new__(httpx2.Request)
        request.__dict__.update(first.__dict__)
        given = headers.multi_items() if isinstance(headers, httpx2.Headers) else headers
        request.extensions = {_GIVEN: (path, given or (), content or b"")}
        return request

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Answer one request. Raises what the middleware raises, and what `Sender.send` does."""
        path, given, body = request.extensions[_GIVEN]
        headers = request_headers(each for each in given if not each[0].lower().startswith(_TELEMETRY))
        for name in self._left_out:
            headers.pop(name, None)
        endpoint = self._endpoint
        asked = ModelRequest(endpoint.model, self._wire(path), request.method, path, headers, body)
        opened: list[Close] = []
        send = partial(self._sender.send, opened=opened.append)
        try:
            response = await (send(asked) if endpoint.exchange is None else endpoint.exchange(asked, send))
        except BaseException:
            await _close(opened)
            raise
        told = [(name.encode(*_AS_AIOHTTP), text.encode(*_AS_AIOHTTP)) for name, text in response.headers.items()]
        stream = Body(response, opened)
        return httpx2.Response(response.status, headers=told, stream=stream, request=request, extensions=_CLOSED)

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await super().aclose()
        await self._sender.aclose()


class Body(httpx2.AsyncByteStream):
    """The body of a response, whole or still to come, and the headers as they came.

    What was opened for it is closed with it: middleware may have put another body in the place of the one that was
    sent, and then nobody else closes that.
    """

    def __init__(self, response: ModelResponse, opened: Sequence[Close]) -> None:
        self.headers = response.headers
        self._response, self._opened = response, opened

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.chunks

    async def read(self) -> bytes:
        """Return the whole body, without the checks of httpx2, and close it."""
        try:
            return await self._response.read()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        await _close(self._opened)


async def _close(opened: Sequence[Close]) -> None:
    for close in opened:
        await close()
