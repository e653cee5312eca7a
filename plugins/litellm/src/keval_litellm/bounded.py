"""Bounds for what LiteLLM reads over HTTP: no reply is larger than it may be, and none is fetched at another origin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs
import httpx

from keval_clients.bounds import (
    ENCODINGS,
    MOST_REDIRECTS,
    EncodingError,
    RedirectError,
    ReplyTooLargeError,
    Unpacker,
    following,
)
from keval_clients.http import MOST_BYTES

_plainly_sent = httpx.AsyncClient.send


class UnusableReplyError(Exception):
    """A provider's reply that is not read; the message says why, and asking again would not help."""


def bound_replies() -> None:
    """Bound all replies that an asynchronous client of this process reads, those of vendors' SDKs included."""
    # The class itself is changed, as vendors' SDKs make clients of their own. This process does nothing else.
    httpx.AsyncClient.send = _sent  # type: ignore[method-assign]


async def _sent(
    self: httpx.AsyncClient, request: httpx.Request, *, stream: bool = False, **options: Any
) -> httpx.Response:
    """Send a request as `httpx.AsyncClient.send` does, within bounds. Raises UnusableReplyError."""
    for _ in range(MOST_REDIRECTS + 1):
        # Nothing else can be unpacked within bounds.
        request.headers["accept-encoding"] = ENCODINGS
        response = await _plainly_sent(self, request, stream=True, **{**options, "follow_redirects": False})
        try:
            leads = following(request.method, str(request.url), response.status_code, response.headers)
            if leads is None:
                _bound(response)
                if not stream:
                    await response.aread()
                return response
        except (RedirectError, EncodingError) as error:
            await response.aclose()
            raise UnusableReplyError(f"the provider's endpoint {error}") from error
        except BaseException:
            await response.aclose()
            raise
        await response.aclose()
        assert response.next_request is not None  # noqa: S101 - a redirect has one
        request = response.next_request
    raise UnusableReplyError(f"the provider's endpoint redirects more than {MOST_REDIRECTS} times")


def _bound(response: httpx.Response) -> None:
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)  # noqa: S101 - an asynchronous client's
    # The header goes, or httpx would unpack a second time.
    response.stream = _Bounded(stream, Unpacker(MOST_BYTES, response.headers.pop("content-encoding", "")))


@attrs.frozen(eq=False)
class _Bounded(httpx.AsyncByteStream):
    _stream: httpx.AsyncByteStream
    _unpacker: Unpacker

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                yield self._unpacker.unpack(piece)
            self._unpacker.end()
        except ReplyTooLargeError as error:
            raise UnusableReplyError(f"the provider's reply has more than {MOST_BYTES:,} bytes") from error
        except EncodingError as error:
            raise UnusableReplyError(f"the provider's reply cannot be read: {error}") from error

    async def aclose(self) -> None:
        await self._stream.aclose()
