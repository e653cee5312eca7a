"""A channel to a server without the tap: a session of the trial's own, which nobody watches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
from mcp import MCPError

from keval.plugin import McpServer
from keval_mcp.server.results import tool_error
from keval_mcp.server.upstream import CallTimeoutError, Upstream

__all__ = ["DirectChannel", "direct_channel"]


@asynccontextmanager
async def direct_channel(server: McpServer) -> AsyncIterator[DirectChannel]:
    """Open a session with a server, and close it at the end. Raises ServerLostError when it does not come up."""
    upstream = await Upstream.connect(server, server.timeout)
    try:
        yield DirectChannel(upstream)
    finally:
        await upstream.close()


@attrs.frozen(eq=False)
class DirectChannel:
    """Lists and calls as a `keval.plugin.ServerChannel` does."""

    _upstream: Upstream

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        return self._upstream.listing.tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await self._upstream.call({"name": name, "arguments": dict(arguments)})
        except MCPError as refused:
            return tool_error(refused.message)
        except CallTimeoutError as late:
            return tool_error(str(late))
        except ValueError as invalid:
            return tool_error(f"what came is not the result of a tool call: {invalid}")
