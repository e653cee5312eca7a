"""Server-sent events, as an agent over HTTP may answer with them."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def event_data(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream (HTML Living Standard, section 9.2.6), without names and ids.

    What follows the last whole event is left out, as the standard has it.
    """
    # A line is put together once, at its end: to add each chunk to what came before takes the square of a long line.
    begun = bytearray()
    data: list[bytes] = []
    after_return = False
    async for chunk in chunks:
        if after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # noqa: PLW2901 - the second half of a line's end
        after_return = chunk.endswith(b"\r")
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for ending in lines:
            line = bytes(begun) + ending
            begun.clear()
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif not line:
                if told := b"\n".join(data):
                    yield told
                data = []
        begun += rest
