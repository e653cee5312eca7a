"""Server-sent events: what a streamed reply consists of."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

__all__ = ["event_data"]

_LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")
"""The end of a line; a carriage return at the end of a chunk may be the first half of one."""


async def event_data(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream (HTML Living Standard, section 9.2.6), without names and ids.

    What follows the last whole event is left out, as the standard has it.
    """
    rest = b""
    data: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = _LINE_END.split(rest + chunk)
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif not line:
                if told := b"\n".join(data):
                    yield told
                data = []
