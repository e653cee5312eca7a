"""The tap in memory, for agents in keval's own process."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import attrs
from mcp import MCPError

from keval.plugin import ReplayMissError, ServerLostError
from keval_mcp.passage.passage import Passage
from keval_mcp.server.results import tool_error
from keval_mcp.tap.pipe import pipe

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.client._transport import TransportStreams

__all__ = ["Channel"]


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
