"""HTTP by aiohttp: sends a model request as it is, and returns the response."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from ssl import PROTOCOL_TLS_CLIENT, SSLContext, get_default_verify_paths
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs
from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    TooManyRedirects,
)
from yarl import URL

from keval.plugin import (
    ModelError,
    ModelRequest,
    ModelResponse,
    PreflightError,
    TrialError,
    request_headers,
    response_headers,
)

_TIMEOUT = ClientTimeout(total=None, sock_connect=30.0)
"""A request may take as long as keval lets a trial take."""

_KEEP_ALIVE = 4.0
"""Seconds: less than the 5 after which uvicorn, and many a model server with it, hangs up on an idle connection."""

_REDIRECTS = 10


@attrs.define(eq=False)
class Sender:
    """Sends requests to one endpoint; any number of them at once wait for no connection.

    `secrets` are headers that each request gets and nobody else sees: the key, above all. A longer reply than
    `max_reply_bytes`, decoded, raises TrialError of kind `reply_too_large` and is read no further. Belongs to the event
    loop of its first request.
    """

    _base: str
    _secrets: dict[str, str] = attrs.field(repr=False)
    _proxy: str | None
    _tls: SSLContext | bool
    _max_reply_bytes: int | None
    _session: ClientSession | None = attrs.field(default=None, init=False)

    @classmethod
    def to(cls, url: str, secrets: dict[str, str], max_reply_bytes: int | None = None) -> Sender:
        """Return a sender to a base URL; raises PreflightError: the environment names a proxy that cannot be used."""
        base = str(URL(url).with_query(None)).rstrip("/")
        return cls(base, secrets, proxy_of(url), tls_of(url), max_reply_bytes)

    async def send(self, request: ModelRequest) -> ModelResponse:
        """Send a request and read the whole reply, but for a stream of events, which is passed on as it arrives.

        Redirects are followed; another host is not given the key.

        Raises:
            ModelError: the endpoint cannot be reached, or broke off. A stream raises that when it is read.
            TrialError: kind `reply_too_large`.
        """
        if self._session is None:
            self._session = self._begin()
        try:
            response = await self._session.request(
                request.method,
                URL(self._base + request.path, encoded=True),
                headers=request_headers(request.headers.items()) | self._secrets,
                data=request.body or None,
                max_redirects=_REDIRECTS,
                proxy=self._proxy,
            )
        except TooManyRedirects as error:
            raise ModelError(f"the model's endpoint gave no answer: more than {_REDIRECTS} redirects") from error
        except (ClientError, OSError) as error:
            raise _no_answer(error) from error
        headers = response_headers(response.headers.items())
        if response.content_type == "text/event-stream":
            return ModelResponse(response.status, headers, self._pieces(response))
        return ModelResponse.of(response.status, headers, await self._whole(response))

    async def _whole(self, response: ClientResponse) -> bytes:
        pieces: list[bytes] = []
        try:
            while piece := await self._read(response, sum(map(len, pieces))):
                pieces.append(piece)
        finally:
            response.close()
        return b"".join(pieces)

    async def _pieces(self, response: ClientResponse) -> AsyncIterator[bytes]:
        length = 0
        try:
            while piece := await self._read(response, length):
                length += len(piece)
                yield piece
        finally:
            response.close()

    async def _read(self, response: ClientResponse, length: int) -> bytes:
        """Read what has arrived of a decoded body of which so much was read; nothing at its end.

        aiohttp decodes no more at once than is read here.
        """
        try:
            piece = await response.content.readany()
        except (ClientError, OSError) as error:
            raise _no_answer(error) from error
        if self._max_reply_bytes is not None and length + len(piece) > self._max_reply_bytes:
            raise _too_large(self._max_reply_bytes)
        return piece

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        if self._session is not None:
            await self._session.close()

    def _begin(self) -> ClientSession:
        return ClientSession(
            # Without a limit: aiohttp reads 0 so.
            connector=TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE, ssl=self._tls),
            cookie_jar=DummyCookieJar(),
            timeout=_TIMEOUT,
        )


def _no_answer(error: Exception) -> ModelError:
    # The message of an error alone may be empty.
    return ModelError(f"the model's endpoint gave no answer: {type(error).__name__}: {error}")


def _too_large(limit: int) -> TrialError:
    return TrialError(
        f"the model's reply has more than {limit:,} bytes; raise execution.max_reply_bytes if that is right",
        stage="model",
        kind="reply_too_large",
        retryable=True,
    )


def tls_of(url: str) -> SSLContext | bool:
    """Return what verifies the endpoint: OpenSSL's certificates where there are any, which SSL_CERT_FILE may name, and
    else the system's."""
    paths = get_default_verify_paths()
    if not url.startswith("https:") or (sys.platform == "linux" and (paths.cafile or paths.capath)):
        return True
    from truststore import SSLContext as SystemContext  # few need it

    return SystemContext(PROTOCOL_TLS_CLIENT)


def proxy_of(url: str) -> str | None:
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
