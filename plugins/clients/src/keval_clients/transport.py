"""The transport below a vendor's SDK: requests go through the middleware of a run, and are sent by aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack
from functools import partial

import attrs
import httpx2

from keval.records.models import Exchange, ModelRequest, Wire, request_headers
from keval_clients.sender import Sender

_AS_AIOHTTP = "utf-8", "surrogateescape"
"""How aiohttp reads the headers of a reply."""


@attrs.frozen(eq=False)
class ModelTransport(httpx2.AsyncBaseTransport):
    """Hands each request of an SDK's to `exchange`, if there is one, and then to `sender`.

    `wire` tells the protocol of a request by its path below the base URL. The headers `left_out` are not passed on:
    they are the SDK's own reading of the environment, and the endpoint's provider says what is sent of that. What the
    middleware or the sender raises passes through the SDK, which knows errors of httpx2 alone.
    """

    model: str
    _sender: Sender
    _wire: Callable[[str], Wire]
    _exchange: Exchange | None = None
    _left_out: Collection[str] = ()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request. Raises what the middleware raises, and what `Sender.send` does."""
        path = self._sender.below(request.url.raw_path.decode("ascii"))
        headers = request_headers(request.headers.items())
        for name in self._left_out:
            headers.pop(name, None)
        asked = ModelRequest(self.model, self._wire(path), request.method, path, headers, await request.aread())
        # Middleware may put another body in the place of the one that was sent, and then nobody else closes that.
        opened = AsyncExitStack()
        send = partial(self._sender.send, opened=opened)
        try:
            response = await (send(asked) if self._exchange is None else self._exchange(asked, send))
        except BaseException:
            await opened.aclose()
            raise
        headers = [(name.encode(*_AS_AIOHTTP), text.encode(*_AS_AIOHTTP)) for name, text in response.headers.items()]
        if response.size is None:
            return httpx2.Response(response.status, headers=headers, stream=_Chunks(response.chunks, opened))
        return httpx2.Response(response.status, headers=headers, content=await response.read())

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._sender.aclose()


class _Chunks(httpx2.AsyncByteStream):
    """A body that is still to come."""

    def __init__(self, chunks: AsyncIterator[bytes], opened: AsyncExitStack) -> None:
        self._chunks, self._opened = chunks, opened

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._opened.aclose()
