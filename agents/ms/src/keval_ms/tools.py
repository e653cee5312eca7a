"""The framework's MCP tools, each of which connects once and lists its tools once.

Left alone, the framework reconnects in the middle of a conversation and sends the interrupted call a second time. The
server may have run it already, and a new session has lost the old one's state: neither would show in an answer. It
also lists the tools again when the server says that they changed or a stream of events ends, and reconnects for that.
It declares that it samples for servers, and without a callback that allows it refuses each time; here it does not.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, TextIO, TypeAlias

import attrs
from agent_framework import MCPStdioTool, MCPStreamableHTTPTool
from httpx2 import AsyncClient
from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

from keval.plugin import McpServer, ServerLostError
from keval_ms.arguments import LET_THROUGH
from keval_ms.results import ParseResult

__all__ = ["HttpTool", "McpTool", "SseTool", "StdioTool"]


@attrs.define
class Connection:
    """A server's one connection; `owner` is the task in which the framework opened it."""

    server: str
    owner: asyncio.Task[Any] | None = None
    _listed: bool = False

    def begin(self) -> None:
        """Note the running task as the owner; raises ServerLostError the second time."""
        if self.owner is not None:
            raise ServerLostError(
                f"MCP server {self.server!r} lost its connection, and with it what it knew of the trial"
            )
        self.owner = asyncio.current_task()

    def begin_listing(self, tool: McpTool) -> bool:
        """Say whether the tools are still to be listed; those of a trial are fixed from then on."""
        begun, self._listed = self._listed, True
        tool._ping_available = False  # else the framework asks first whether the server is there that just came up
        return not begun

    async def abort(self) -> None:
        """Give up connecting; what was opened so far is closed by the task that opened it."""
        if self.owner is not None:
            self.owner.cancel()
            await asyncio.wait({self.owner})


class StdioTool(MCPStdioTool):
    """A server in a process of its own, whose stderr goes to a file instead of the terminal."""

    sampling_callback = None  # type: ignore[assignment]  # see the module

    def __init__(self, server: McpServer, parse: ParseResult, stderr: TextIO) -> None:
        super().__init__(server.name, server.command, **_options(server, parse))
        self.connection = Connection(server.name)
        self._process = StdioServerParameters(
            command=server.command or "", args=list(server.args), env=dict(server.env), cwd=server.cwd
        )
        self._stderr = stderr

    async def load_tools(self) -> None:
        if self.connection.begin_listing(self):
            await super().load_tools()

    def get_mcp_client(self) -> Any:
        self.connection.begin()
        return stdio_client(self._process, errlog=self._stderr)


class HttpTool(MCPStreamableHTTPTool):
    """A server over streamable HTTP, or behind the tap in this process; `client` is shared and outlives the tool."""

    sampling_callback = None  # type: ignore[assignment]  # see the module

    def __init__(self, server: McpServer, parse: ParseResult, client: AsyncClient) -> None:
        super().__init__(
            server.name,
            server.url,
            http_client=client,
            static_headers=server.headers,
            **_options(server, parse),
        )
        self.connection = Connection(server.name)
        self._channel = server.channel

    async def load_tools(self) -> None:
        if self.connection.begin_listing(self):
            await super().load_tools()

    def get_mcp_client(self) -> Any:
        self.connection.begin()
        return super().get_mcp_client() if self._channel is None else self._channel.streams()


class SseTool(MCPStreamableHTTPTool):
    """A server over the older HTTP+SSE transport, for which the framework has no tool of its own."""

    sampling_callback = None  # type: ignore[assignment]  # see the module

    def __init__(self, server: McpServer, parse: ParseResult) -> None:
        super().__init__(server.name, server.url, **_options(server, parse))
        self.connection = Connection(server.name)
        self._server = server

    async def load_tools(self) -> None:
        if self.connection.begin_listing(self):
            await super().load_tools()

    def get_mcp_client(self) -> Any:
        self.connection.begin()
        # Between two calls nothing comes; only the session's own timeout may end the wait for an answer.
        return sse_client(self._server.url or "", dict(self._server.headers), sse_read_timeout=math.inf)


McpTool: TypeAlias = StdioTool | HttpTool | SseTool


def _options(server: McpServer, parse: ParseResult) -> dict[str, Any]:
    return {
        "load_prompts": False,
        "request_timeout": math.ceil(server.timeout),
        "additional_tool_argument_names": LET_THROUGH,
        "parse_tool_results": parse,
    }
