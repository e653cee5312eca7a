"""The tap in memory, for agents in keval's own process: calls by a channel, or the streams of the MCP SDK's client."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import attrs
from anyio.abc import ObjectSendStream
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from keval.errors import ServerLostError
from keval.records.cassettes import ReplayMissError
from keval_mcp.passage.passage import Passage
from keval_mcp.server.session import tool_error
from keval_mcp.tap.agent_session import Talk

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.client._transport import TransportStreams


@attrs.frozen(eq=False)
class Channel:
    """Leads to `passage`; see `keval.plugin.ServerChannel`."""

    passage: Passage

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        return await self.passage.list_tools()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            result = await self.passage.forward({"name": name, "arguments": dict(arguments)})
        except MCPError as refused:
            result = tool_error(refused.message)
        log = self.passage.log
        if log.missed is not None:
            raise ReplayMissError(log.missed)
        if log.lost is not None:
            raise ServerLostError(log.lost, kind=log.kind)
        return result

    def streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        return pipe(self.passage)


@asynccontextmanager
async def pipe(passage: Passage) -> AsyncIterator[TransportStreams]:
    """Open a session with the tap, and yield the streams that a transport of the SDK yields."""
    arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    def deliver(message: Mapping[str, Any], about: int | str | None) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # who has ended the session waits no more
            arriving.send_nowait(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

    talk = Talk(passage, deliver)
    try:
        yield incoming, _Outgoing(talk)
    finally:
        await talk.close()
        arriving.close()
        incoming.close()


@attrs.frozen(eq=False)
class _Outgoing(ObjectSendStream[SessionMessage]):
    """A stream of what the SDK's client sends; it is taken at once."""

    _talk: Talk

    async def send(self, item: SessionMessage) -> None:
        await self._talk.take(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def aclose(self) -> None:
        """Leave the session to the pipe, which ends it."""
