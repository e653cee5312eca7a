"""Server-sent events, as an agent over HTTP may answer with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from keval_http.events import event_data


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_read_whatever_ends_a_line_and_however_they_are_cut(end: bytes, size: int) -> None:
    body = b"\n\ndata: a\ndata:b\ndata\n\nevent: x\ndata: c\n\ndata: lost".replace(b"\n", end)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async def read() -> list[bytes]:
        return [data async for data in event_data(chunks())]

    assert [b"a\nb\n", b"c"] == asyncio.run(read())
