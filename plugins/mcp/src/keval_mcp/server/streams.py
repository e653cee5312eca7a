"""A message stream that tells when it ends, and what came over it that is no message."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import attrs

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.shared._stream_protocols import ReadStream

__all__ = ["Junk", "WatchedStream"]

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
