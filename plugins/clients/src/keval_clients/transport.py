"""HTTP for the vendors' SDKs by aiohttp, which takes about 0.6 ms of CPU less per request than their default.

The aiohttp transports that the SDKs bring keep cookies, and let some of aiohttp's errors through that no caller of an
SDK expects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs
import httpx2
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from keval.plugin import PreflightError, TrialError

_TIMEOUT = ClientTimeout(total=None, sock_connect=30.0)
"""A request may take as long as keval lets a trial take."""

_KEEP_ALIVE = 4.0
"""Seconds: less than the 5 after which uvicorn, and many a model server with it, hangs up on an idle connection."""


_PIECE = 2**12
"""Bytes of a compressed body that are decoded at a time: even these can become some megabytes."""


def http_client(url: str, max_reply_bytes: int | None = None) -> httpx2.AsyncClient:
    """Return a client for one endpoint, on which any number of requests at once wait for no connection.

    A longer reply than `max_reply_bytes`, decoded, raises TrialError of kind `reply_too_large` and is read no further.

    Raises PreflightError: the environment names a proxy that cannot be used.
    """
    return httpx2.AsyncClient(
        transport=_Transport(_proxy(url), _tls(), max_reply_bytes),
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=True,
        timeout=None,
    )


_OF_THE_ENCODED_BODY = {b"content-encoding", b"content-length", b"transfer-encoding"}


@attrs.define(eq=False)
class _Pieces(httpx2.AsyncByteStream):
    """A body as it arrives."""

    _pieces: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces


@attrs.define(eq=False)
class _Arriving(httpx2.AsyncByteStream):
    """The decoded body of a response, which is closed with it."""

    _response: ClientResponse
    _body: AsyncIterator[bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _told():
            async for piece in self._body:
                yield piece

    async def aclose(self) -> None:
        self._response.close()


@contextmanager
def _told() -> Iterator[None]:
    """Raise aiohttp's errors as one that the SDKs expect."""
    try:
        yield
    except (ClientError, OSError) as error:
        raise httpx2.TransportError(f"{type(error).__name__}: {error}") from error  # the message alone may be empty


@attrs.define(eq=False)
class _Transport(httpx2.AsyncBaseTransport):
    """Sends a request and reads the whole reply, but for a stream of events, which is passed on as it arrives.

    Belongs to the event loop of its first request.
    """

    _proxy: str | None
    _tls: SSLContext
    _limit: int | None
    _session: ClientSession | None = attrs.field(default=None, init=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._session is None:
            self._session = self._begin()
        with _told():
            response = await self._session.request(
                request.method,
                str(request.url),
                headers=request.headers.multi_items(),
                data=await request.aread() or None,
                allow_redirects=False,
                proxy=self._proxy,
            )
        headers = [pair for pair in response.raw_headers if pair[0].lower() not in _OF_THE_ENCODED_BODY]
        body: httpx2.AsyncByteStream = _Arriving(response, self._body(response))
        if response.content_type != "text/event-stream":
            try:
                body = httpx2.ByteStream(b"".join([piece async for piece in body]))
            finally:
                response.close()
        return httpx2.Response(response.status, headers=headers, stream=body)

    async def _body(self, response: ClientResponse) -> AsyncIterator[bytes]:
        """Read and decode the body, as far as it may go."""
        encoded = "content-encoding" in response.headers
        pieces = response.content.iter_chunked(_PIECE if encoded else 16 * _PIECE)
        answer = httpx2.Response(response.status, headers=response.raw_headers, stream=_Pieces(pieces))
        length = 0
        async for piece in answer.aiter_bytes():
            length += len(piece)
            if self._limit is not None and length > self._limit:
                raise TrialError(
                    f"the model's reply has more than {self._limit:,} bytes; raise execution.max_reply_bytes if that is"
                    " right",
                    stage="model",
                    kind="reply_too_large",
                    retryable=True,
                )
            yield piece

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _begin(self) -> ClientSession:
        return ClientSession(
            # Without a limit: aiohttp reads 0 so.
            connector=TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE, ssl=self._tls),
            cookie_jar=DummyCookieJar(),
            timeout=_TIMEOUT,
            auto_decompress=False,  # httpx2 does
        )


@cache
def _tls() -> SSLContext:
    # One for all clients, as it is nearly all of the 20 ms that building a client takes.
    return httpx2.create_ssl_context()


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; one without a scheme is reached over HTTP.

    Raises PreflightError: it is no HTTP proxy, or no address at all.
    """
    # Left to aiohttp, it would be looked up at each request, and the keys of a netrc with it.
    address, proxies = urlsplit(url), getproxies()
    if proxy_bypass(address.netloc):
        return None
    name = address.scheme if address.scheme in proxies else "all"
    if name not in proxies:
        return None
    proxy = proxies[name] if "://" in proxies[name] else f"http://{proxies[name]}"
    if not _is_http(proxy):
        variable = f"{name}_proxy"  # its value may hold a password
        raise PreflightError(
            f"the environment variable {variable} (or {variable.upper()}) must be the address of an http:// or https://"
            f" proxy, as no other kind can be used; correct it, or name {address.hostname} in no_proxy"
        )
    return proxy


def _is_http(proxy: str) -> bool:
    try:
        address = urlsplit(proxy)
        return address.scheme in {"http", "https"} and bool(address.hostname) and address.port != 0
    except ValueError:
        return False
