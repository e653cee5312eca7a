"""A message stream that tells when it ends."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import attrs

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.shared._stream_protocols import ReadStream

__all__ = ["WatchedStream"]

T = TypeVar("T")


@attrs.frozen
class WatchedStream(Generic[T]):
    """A session's incoming messages; sets `ended` when the server closes them.

    The SDK tells only the callers that are waiting, so without this the death of an idle server goes unnoticed until
    a trial's next call fails.
    """

    _stream: ReadStream[T]
    _ended: asyncio.Event

    async def receive(self) -> T:
        try:
            return await self._stream.receive()
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
