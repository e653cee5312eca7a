"""Sending a request on to a model's endpoint, with the key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

import httpx2

from keval.plugin import (
    Endpoint,
    ModelError,
    ModelRequest,
    ModelResponse,
    PreflightError,
    TrialError,
    Wire,
    request_headers,
    response_headers,
)

__all__ = ["http_client", "send_on"]

_KEY_HEADERS: Mapping[Wire, tuple[str, str]] = {
    "openai-chat": ("authorization", "Bearer {}"),
    "openai-responses": ("authorization", "Bearer {}"),
    "anthropic": ("x-api-key", "{}"),
    "gemini": ("x-goog-api-key", "{}"),
}
"""The header in which each protocol wants the key."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_CONNECT_TIMEOUT = 30.0
"""Seconds; beyond connecting, a request may take as long as keval lets a trial take."""

_KEEP_ALIVE = 4.0
"""Seconds: less than the 5 after which many a model server hangs up on an idle connection."""

_REDIRECTS = 5


def http_client() -> httpx2.AsyncClient:
    """Return a client on which any number of requests at once wait for no connection.

    The proxies that the environment names are used, but not for loopback.

    Raises:
        PreflightError: one of them cannot be used.
    """
    try:
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=_KEEP_ALIVE),
            mounts={f"all://{host}": None for host in _LOOPBACK},
        )
    except (ImportError, ValueError) as error:
        raise PreflightError(
            f"the environment names a proxy for HTTP that cannot be used: {error}; correct http_proxy, https_proxy or"
            " all_proxy, or name the model's host in no_proxy"
        ) from error


async def send_on(
    client: httpx2.AsyncClient, opened: AsyncExitStack, endpoint: Endpoint, request: ModelRequest
) -> ModelResponse:
    """Send a request to an endpoint; its response is closed with `opened`.

    Redirects are followed as far as they stay on the endpoint's host, as no other is to see the key.

    Raises:
        ModelError: the endpoint cannot be reached, or redirects elsewhere.
        TrialError: kind `reply_too_large`; also raised while the body is read.
    """
    url = endpoint.urls[request.wire].rstrip("/") + request.path
    sent = client.build_request(
        request.method, url, headers=_with_key(request, endpoint.api_key), content=request.body or None
    )
    for _ in range(_REDIRECTS + 1):
        try:
            response = await client.send(sent, stream=True)
        except httpx2.TransportError as error:
            problem = f"the model's endpoint gave no answer: {type(error).__name__}: {error}"
            raise ModelError(problem) from error
        opened.push_async_callback(response.aclose)
        following = response.next_request
        if following is None:
            _check_length(response, endpoint.max_reply_bytes)
            return ModelResponse(
                response.status_code,
                response_headers(response.headers.multi_items()),
                _bounded(response.aiter_bytes(), endpoint.max_reply_bytes),
            )
        if _origin(following.url) != _origin(sent.url):
            raise ModelError(
                f"the model's endpoint redirects to {following.url.host}, which is not given the key; if that is right,"
                " make it the base URL"
            )
        sent = following
    raise ModelError(f"the model's endpoint redirects more than {_REDIRECTS} times")


async def _bounded(chunks: AsyncIterator[bytes], limit: int | None) -> AsyncIterator[bytes]:
    """Yield a body as it arrives, decoded, and read no more than `limit` bytes of it."""
    length = 0
    async for chunk in chunks:
        length += len(chunk)
        if limit is not None and length > limit:
            raise _too_large(limit)
        yield chunk


def _check_length(response: httpx2.Response, limit: int | None) -> None:
    """Raise TrialError if a response says that it is too large, before anything of it is passed on."""
    length = response.headers.get("content-length", "")
    if limit is not None and length.isascii() and length.isdigit() and int(length) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> TrialError:
    """Return an error that no gate repeats the request for, as the reply would be as large again."""
    problem = f"the model's reply has more than {limit:,} bytes; raise execution.max_reply_bytes if that is right"
    return TrialError(problem, stage="model", kind="reply_too_large", retryable=True)


def _with_key(request: ModelRequest, key: str) -> list[tuple[bytes, bytes]]:
    name, form = _KEY_HEADERS[request.wire]
    headers = {**request_headers(request.headers.items()), name: form.format(key)}
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
