"""Server-sent events: a response that goes on, and that a browser takes up again when its connection is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import attrs
import orjson
from starlette.responses import StreamingResponse

__all__ = ["Sent", "event_stream"]

_SILENCE = 15.0
"""Seconds after which a comment is sent: only so is a browser that went away noticed."""


@attrs.frozen
class Sent:
    """An event for a page: what it is, its data, and the id that a browser says again when it comes back."""

    event: str
    data: Any
    id: str | None = None

    def encode(self) -> bytes:
        """Return the event as it is sent; no text in it can end a line."""
        lines = [f"event: {self.event}".encode(), b"data: " + orjson.dumps(self.data)]
        if self.id is not None:
            lines.insert(0, f"id: {self.id}".encode())
        return b"\n".join(lines) + b"\n\n"


def event_stream(events: AsyncGenerator[Sent, None], retry: float = 1.0) -> StreamingResponse:
    """Return the response that sends events as they come. A browser that loses it asks again after `retry` seconds.

    What `Last-Event-ID` said is for whoever makes the events. The generator is closed when the browser goes away.
    """
    return StreamingResponse(
        _lines(events, retry), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _lines(events: AsyncGenerator[Sent, None], retry: float) -> AsyncIterator[bytes]:
    yield f"retry: {retry * 1000:.0f}\n\n".encode()
    waiting: asyncio.Future[Sent] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait({waiting}, timeout=_SILENCE)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                sent = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield sent.encode()
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})
        await events.aclose()
