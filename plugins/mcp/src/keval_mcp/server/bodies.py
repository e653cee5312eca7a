"""The bodies of answers over HTTP: none is larger than allowed, and one that breaks off is told, and may be resumed."""

from __future__ import annotations

import math
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import anyio
import attrs
import httpx2

from keval.errors import FailureKind
from keval_clients.bounds import EncodingError, ReplyTooLargeError, Unpacker

TOO_LARGE: FailureKind = "result_too_large"
"""The kind of failure; also the `data` of the error that stands for a message that was too large."""

SSE_LIMIT = 10**6
"""Bytes of a message over SSE: the SDK's client takes no event above 1 MiB, and ends the session then."""

_ROOM = 2**20
"""Bytes beyond the limit that one piece of a stream may hold, as it may hold many events."""
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


# At an SSEError the SDK fails the request that waits for the event; at any other error it would connect again.
class TooLargeError(httpx2.SSEError):
    """A message has more bytes than allowed."""

    def __init__(self, limit: int) -> None:
        remedy = "raise execution.max_result_bytes if that is right"
        if limit == SSE_LIMIT:
            remedy = "SSE carries no more; let the server use streamable HTTP if that is right"
        super().__init__(f"a result of more than {limit:,} bytes; {remedy}")


class BrokenOffError(httpx2.StreamError):
    """The connection broke in the middle of a body; the SDK fails the request that waits for it, and no other."""


class StreamBrokenError(httpx2.SSEError):
    """The events in which an answer comes ended before it; the SDK asks for the rest if they had ids.

    `in_event` says that they ended within one, so that the server had the answer.
    """

    def __init__(self, reason: object, in_event: bool = False) -> None:
        self.in_event = in_event
        super().__init__(f"its answer broke off: {reason}")


LostAnswer: TypeAlias = TooLargeError | BrokenOffError | StreamBrokenError

RESUMES = "last-event-id"
"""The header of a request that goes on with a stream that broke off."""
RESUME_SECONDS = 5.0
"""How long a server may take to send an event again that broke off."""
_AT_ONCE = 1.0
"""Seconds in which a stream that resumes another ends if the server knows nothing of that."""


def bound(
    response: httpx2.Response, limit: int, note: Callable[[LostAnswer], object], patience: float = math.inf
) -> None:
    """Let a response whose body has not been read end with TooLargeError, which is noted, when it is too large.

    Of a stream of events, each is counted for itself. One that resumes another must bring an event within `patience`
    seconds. Raises httpx2.DecodingError: it is packed as nobody asked.
    """
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - an asynchronous client's
    events = response.headers.get("content-type", "").startswith("text/event-stream")
    try:
        unpacker = Unpacker(limit + _ROOM if events else limit, response.headers.get("content-encoding", ""))
    except EncodingError as error:
        raise httpx2.DecodingError(f"the server's reply cannot be read: {error}", request=response.request) from error
    response.headers.pop("content-encoding", None)  # it is decoded once
    response.stream = _Bounded(stream, unpacker, limit, note, events, response.request, patience)


@attrs.define(eq=False)
class _Bounded(httpx2.AsyncByteStream):
    _stream: httpx2.AsyncByteStream
    _unpacker: Unpacker
    _limit: int
    _note: Callable[[LostAnswer], object]
    _events: bool
    _request: httpx2.Request
    _patience: float
    _length: int = attrs.field(default=0, init=False)
    _silent: bool = attrs.field(default=True, init=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        end = b""
        async for packed in self._whole():
            try:
                chunk = self._unpacker.unpack(packed)
            except ReplyTooLargeError:
                raise self._too_large() from None
            except EncodingError as error:
                raise httpx2.DecodingError(f"the server's reply cannot be read: {error}") from error
            self._length += len(chunk)
            if self._events:
                self._unpacker.begin_anew()
                # The blank line after an event may come in two chunks.
                seen = end + chunk
                if ends := [*_EVENT_END.finditer(seen)]:
                    self._length = len(seen) - ends[-1].end()
                self._silent = self._silent and b"data" not in seen and b"id:" not in seen  # a comment says nothing
                end = seen[-3:]
            if self._length > self._limit:
                raise self._too_large()
            yield chunk

    async def _whole(self) -> AsyncIterator[bytes]:
        resumes, began = RESUMES in self._request.headers, time.monotonic()
        answers = resumes or self._request.method == "POST"
        pieces = aiter(self._stream)
        try:
            while True:
                waits = self._silent and self._patience < math.inf
                with anyio.fail_after(began + self._patience - time.monotonic() if waits else None):
                    packed = await anext(pieces, None)
                if packed is None:
                    break
                yield packed
        except httpx2.TransportError as error:
            if not self._events:
                broken = BrokenOffError(f"a body that broke off: {error}")
                self._note(broken)
                raise broken from error
            if answers:
                self._note(StreamBrokenError(error, self._length > 0))
            raise
        except TimeoutError:
            raise self._unresumed(f"the server did not send it again within {self._patience:g} s") from None
        if resumes and self._silent and time.monotonic() - began < _AT_ONCE:
            raise self._unresumed("the server does not know it any more")
        if answers and self._events and self._length:
            self._note(StreamBrokenError("the stream ended in an event", in_event=True))

    def _unresumed(self, reason: str) -> StreamBrokenError:
        error = StreamBrokenError(reason)
        self._note(error)
        return error

    def _too_large(self) -> TooLargeError:
        error = TooLargeError(self._limit)
        self._note(error)
        return error

    async def aclose(self) -> None:
        await self._stream.aclose()
