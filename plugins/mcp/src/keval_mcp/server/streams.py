"""The messages of a server as they arrive: what is no message, and what is larger than allowed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import attrs
import httpx2

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.shared._stream_protocols import ReadStream


T = TypeVar("T")

_LONGEST = 200


@attrs.define(eq=False)
class Junk:
    """What came over a session and is no message: the first such text, quoted, and how many there were."""

    first: str | None = None
    count: int = 0


@attrs.frozen
class WatchedStream(Generic[T]):
    """A session's incoming messages; sets `ended` when the server closes them, and notes in `junk` what is no message.

    The SDK tells only the callers that are waiting, so without this the death of an idle server goes unnoticed until
    a trial's next call fails.
    """

    _stream: ReadStream[T]
    _ended: asyncio.Event
    _junk: Junk

    async def receive(self) -> T:
        try:
            message = await self._stream.receive()
            if isinstance(message, ValueError):
                self._junk.first = self._junk.first or _written(message)
                self._junk.count += 1
            return message
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> WatchedStream[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> WatchedStream[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _written(error: ValueError) -> str:
    """Return the line that could not be read as a message, which pydantic's error has."""
    errors: Any = getattr(error, "errors", None)
    written = errors()[0]["input"] if errors else error
    return repr(str(written)[:_LONGEST])


TOO_LARGE = "result_too_large"
"""The kind of failure; also the `data` of the error that stands for a message that was too large."""

SSE_LIMIT = 10**6
"""Bytes of a message over SSE: the SDK's client takes no event above 1 MiB, and ends the session then."""

_PIECE = 2**12
"""Bytes of a compressed body that are decoded at a time: even these can become some megabytes."""
_EVENT_END = re.compile(rb"\r?\n\r?\n")


class TooLargeError(httpx2.SSEError):
    """A message has more bytes than allowed."""

    def __init__(self, limit: int) -> None:
        remedy = "raise execution.max_result_bytes if that is right"
        if limit == SSE_LIMIT:
            remedy = "SSE carries no more; let the server use streamable HTTP if that is right"
        super().__init__(f"a result of more than {limit:,} bytes; {remedy}")


def bound(response: httpx2.Response, limit: int, note: Callable[[TooLargeError], None]) -> None:
    """Let a response whose body has not been read end with TooLargeError, which is noted, when it is too large.

    Of a stream of events, each is counted for itself.
    """
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - an asynchronous client's
    encoded = "content-encoding" in response.headers
    if encoded:
        stream = _Decoded(stream, response.headers.copy())
        del response.headers["content-encoding"]  # it is decoded once
    events = response.headers.get("content-type", "").startswith("text/event-stream")
    response.stream = _Bounded(stream, limit, note, events)


@attrs.define(eq=False)
class _Decoded(httpx2.AsyncByteStream):
    _stream: httpx2.AsyncByteStream
    _headers: httpx2.Headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in httpx2.Response(200, headers=self._headers, stream=_Pieces(self._stream)).aiter_bytes():
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@attrs.define(eq=False)
class _Pieces(httpx2.AsyncByteStream):
    _stream: httpx2.AsyncByteStream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            for start in range(0, len(chunk), _PIECE):
                yield chunk[start : start + _PIECE]


@attrs.define(eq=False)
class _Bounded(httpx2.AsyncByteStream):
    _stream: httpx2.AsyncByteStream
    _limit: int
    _note: Callable[[TooLargeError], None]
    _events: bool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._stream:
            length += len(chunk)
            if self._events and (ends := [*_EVENT_END.finditer(chunk)]):
                length = len(chunk) - ends[-1].end()
            if length > self._limit:
                error = TooLargeError(self._limit)
                self._note(error)
                raise error
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
