"""The three ways to reach an MCP server, and what an HTTP server refused on the way."""

from __future__ import annotations

import asyncio
import html
import json
import math
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import httpx2
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import METHOD_NOT_FOUND

from keval.records.servers import McpServer
from keval.seams.contexts import ServerSpec
from keval_clients.bounds import ENCODINGS, MOST_REDIRECTS, RedirectError, following
from keval_clients.network import SYSTEM, Network, Tls
from keval_mcp.server.bodies import RESUME_SECONDS, RESUMES, SSE_LIMIT, LostAnswer, StreamBrokenError, bound
from keval_mcp.server.process import ProcessLog
from keval_mcp.server.streams import LONGEST, Junk, SentStream, WatchedStream, stdio_streams

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.client._transport import TransportStreams


RENEWABLE = "keval.renewable"
"""The extension of a request that is sent again with a new token, if the server refuses the one it has."""

_REFUSAL_SECONDS = 2.0
"""How long the body of a refusal is waited for."""
_LARGEST_REFUSAL = 2**20
"""Bytes of it that are read."""
_ANY_LENGTH = 2**50
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)

_refusals: ContextVar[list[str | LostAnswer] | None] = ContextVar("keval_mcp_refusals", default=None)


@contextmanager
def refusals() -> Iterator[list[str | LostAnswer]]:
    """Collect the HTTP errors that answer what is sent from here, and what was too large, by tasks started here too.

    The SDK reports a 503 of a proxy like an error that the server itself returned; only the status tells them apart.
    """
    noted: list[str | LostAnswer] = []
    token = _refusals.set(noted)
    try:
        yield noted
    finally:
        _refusals.reset(token)


def forget_refusals() -> None:
    """Let what was refused until now be nothing that is told."""
    if (noted := _refusals.get()) is not None:
        noted.clear()


async def _note_refusal(response: httpx2.Response) -> None:
    noted = _refusals.get()
    renewable = response.request.extensions.get(RENEWABLE)
    if noted is None or (renewable is not None and renewable(response)):
        return
    if response.status_code < 400:
        kind = response.headers.get("content-type", "")
        is_message = kind.startswith(("application/json", "text/event-stream"))
        # The answer to the end of a session, by DELETE, is none.
        if response.status_code == 200 and not is_message and response.request.method != "DELETE":
            noted.append(f"{kind.partition(';')[0] or 'something'} that is no MCP message")
        return
    if response.status_code == 401 and renewable is None:
        noted.append("HTTP 401 Unauthorized: it wants a login, so its context needs `auth`")
        return
    if RESUMES in response.request.headers:  # what is told is that the stream before it broke off
        return
    said, code = await _said(response)
    # An error of JSON-RPC is the server's own word. On 404 it says that the session is gone, or the method unknown.
    if code is None or (response.status_code == 404 and code != METHOD_NOT_FOUND):
        status = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        noted.append(f"{status}: {said}" if said else status)


async def _said(response: httpx2.Response) -> tuple[str, object]:
    """Return what the body of a refusal says, in one line, or the code of the error of JSON-RPC that it is."""
    try:
        async with asyncio.timeout(_REFUSAL_SECONDS):
            body = await response.aread()
    except (httpx2.HTTPError, httpx2.StreamError, TimeoutError):
        return "", None  # the status says enough
    kind, text = response.headers.get("content-type", ""), body.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        data = json.loads(text)
        if isinstance(data, dict):
            error = data.get("error")
            if "jsonrpc" in data and isinstance(error, dict):
                return "", error.get("code", 0)
            named = error if isinstance(error, dict) else data
            told = (named.get(key) for key in ("error_description", "message", "detail", "title", "error"))
            text = next((each for each in told if isinstance(each, str) and each), text)
    if "html" in kind or text.lstrip().startswith("<"):  # a page: its title
        text = html.unescape(found[1]) if (found := _TITLE.search(text)) else ""
    return " ".join(text.split())[:LONGEST], None


def _note(error: LostAnswer) -> None:
    if (noted := _refusals.get()) is not None:
        noted.append(error)


async def _stay(response: httpx2.Response) -> None:
    """Let no redirect lead to another origin, or a request lose its body. Raises RedirectedError, which is noted."""
    request = response.request
    try:
        following(request.method, str(request.url), response.status_code, response.headers)
    except RedirectError as error:
        if (noted := _refusals.get()) is not None:
            noted.append(f"HTTP {response.status_code}: it {error}")
        raise RedirectedError(f"the server {error}", request=request) from error


def tls_remedy(error: Exception, request: httpx2.Request) -> str:
    """Return which option may mend an error of the first request over TLS, as the end of its message, or nothing."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        known = re.search("self-signed|issuer", str(error))
        return "; name the authority that signed it by 'verify', if it is to be trusted" if known else ""
    # A server that refuses a client closes the connection, and its alert may be lost (RFC 8446, section 4.4.2.4).
    if request.url.scheme == "https" and not isinstance(
        error, httpx2.ConnectError | httpx2.TimeoutException | TimeoutError
    ):
        return "; see whether the server wants a certificate of its clients: 'cert'"
    return ""


class _Client(httpx2.AsyncClient):
    """Turns a connection that broke before its answer into an answer that broke off: the SDK fails that request alone.

    Without it, the SDK would end the session with all its requests. A server that cannot be connected to does end it,
    and does not know any more what it is asked to resume. Over SSE the SDK sends nothing after a message that failed,
    and tells nobody: that sets `ended`.
    """

    ended: asyncio.Event | None = None
    answered = False

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
            self.answered = True
            if response.status_code >= 400 and self.ended is not None:
                self.ended.set()
            return response
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            if not self.answered and (remedy := tls_remedy(error, request)):
                raise httpx2.ConnectError(f"{str(error) or type(error).__name__}{remedy}", request=request) from error
            if self.ended is not None:
                self.ended.set()
                raise
            if isinstance(error, httpx2.ConnectError) != (RESUMES in request.headers):
                raise
            broken = StreamBrokenError(str(error) or type(error).__name__)
            _note(broken)
            kind = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=kind, stream=_Broken(broken), request=request)


@attrs.frozen(eq=False)
class _Broken(httpx2.AsyncByteStream):
    _error: Exception

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise self._error
        yield b""


class RedirectedError(httpx2.RequestError):
    """A server leads to where its requests must not follow."""


def http_client(
    url: str,
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
    *,
    tls: Tls = SYSTEM,
    limit: int | None = None,
    ended: asyncio.Event | None = None,
) -> httpx2.AsyncClient:
    """Return a client that waits as long as its caller does and opens as many connections as there are calls.

    Behind the `url` it has the signature that the SDK asks of a client factory; the `timeout` it proposes is not used.
    A message of more than `limit` bytes is not read further. `ended` is set when a request fails, which is for SSE.

    Raises PreflightError: the environment's variables for the network cannot be used.
    """

    async def keep_small(response: httpx2.Response) -> None:
        broken = any(isinstance(each, StreamBrokenError) and each.in_event for each in _refusals.get() or ())
        resumes = broken and RESUMES in response.request.headers
        if response.status_code >= 400:  # what it says is read whole, and its status tells enough
            bound(response, min(limit or _LARGEST_REFUSAL, _LARGEST_REFUSAL), lambda lost: None)
        else:
            bound(response, limit or _ANY_LENGTH, _note, RESUME_SECONDS if resumes else math.inf)

    client = _Client(
        headers={**(headers or {}), "accept-encoding": ENCODINGS},
        auth=auth,
        **Network.to(url, tls).client,
        follow_redirects=True,
        max_redirects=MOST_REDIRECTS,
        timeout=httpx2.Timeout(30.0, read=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        # The client calls these before it follows a redirect, so `_stay` can forbid it.
        event_hooks={"response": [_stay, keep_small, _note_refusal]},
    )
    client.ended = ended
    return client


@asynccontextmanager
async def connect(
    server: McpServer | ServerSpec, log: ProcessLog, ended: asyncio.Event, junk: Junk
) -> AsyncIterator[TransportStreams]:
    """Open the streams of a session with `server`.

    A process started for it is kept in `log`; `ended` is set when the server closes its side. What is no message
    is noted in `junk`.
    """
    async with AsyncExitStack() as stack:
        incoming, outgoing = await stack.enter_async_context(await _transport(server, log, ended, stack))
        under_way: set[int | str] = set()
        yield WatchedStream(incoming, ended, junk, under_way), SentStream(outgoing, under_way)


async def _transport(
    server: McpServer | ServerSpec, log: ProcessLog, ended: asyncio.Event, stack: AsyncExitStack
) -> Transport:
    limit = server.max_result_bytes if isinstance(server, ServerSpec) else None
    if server.transport == "stdio":
        file = stack.enter_context(log.stderr())
        # `ServerProcess` needs groups of processes, which Windows does not have.
        if sys.platform != "win32":
            return stdio_streams(server, file, limit)
        parameters = StdioServerParameters(
            command=server.command or "",
            args=list(server.args),
            env=dict(server.env),
            cwd=server.cwd,
            # What is not UTF-8 is no message either; it must not end the session before that can be said.
            encoding_error_handler="replace",
        )
        return stdio_client(parameters, errlog=file)
    url, headers = server.url or "", dict(server.headers)
    login: Any = server.login if isinstance(server, ServerSpec) else None  # a `keval_mcp.server.login.Login`
    tls, auth = (SYSTEM, None) if login is None else (login.tls, login if login.auth is not None else None)
    if server.transport == "sse":
        bounded = partial(http_client, url, tls=tls, limit=min(limit or SSE_LIMIT, SSE_LIMIT), ended=ended)
        return sse_client(url, headers=headers, httpx_client_factory=bounded, auth=auth)
    client = await stack.enter_async_context(http_client(url, headers, auth=auth, tls=tls, limit=limit))
    # A large result arrives as one event, and our client has a limit of its own.
    return streamable_http_client(url, http_client=client, max_sse_event_size=None)
