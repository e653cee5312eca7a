"""One trial's MCP sessions, through the framework's own client."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import IO

import attrs
from agent_framework import FunctionTool
from anyio import BrokenResourceError, ClosedResourceError
from httpx2 import AsyncClient, TransportError
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

from keval.plugin import McpServer, ServerLostError, ToolsMissingError
from keval_ms.faults import causes, described
from keval_ms.tools import HttpTool, McpTool, ParseResult, StdioTool

_LOST = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, INVALID_REQUEST, PARSE_ERROR})
"""Codes by which the MCP client says that no answer came. A restarted server refuses an old session as
INVALID_REQUEST; no tool answers so."""

_HTTP_ERROR = (INTERNAL_ERROR, "Server returned an error response")
"""What the MCP client makes of an HTTP error without an MCP message in it, such as a 502."""

_STDERR_LINES = 20
_TASKS = ("optional", "required")
"""What a tool says of itself (`execution.taskSupport`) that may run as a task of MCP, which its SDK does not know."""


@attrs.frozen
class Session:
    """A server, the framework's tool that is connected to it, and where the stderr of its process goes."""

    server: McpServer
    tool: McpTool
    _stderr: IO[str] | None = None

    @property
    def names(self) -> dict[str, str]:
        """The server's name for each tool, by the name the framework gives it."""
        return {function.name: _remote_name(function) for function in self.tool.functions}

    async def open(self) -> None:
        """Connect and load the tools.

        Raises:
            ServerLostError: the server does not come up.
            ToolsMissingError: it does not offer exactly what it listed before the run.
        """
        try:
            await self.tool.connect()
        except Exception as error:
            raise self._lost(f"did not come up: {described(error)}") from error
        found, expected = set(self.names.values()), set(self.server.tools)
        if found != expected:
            raise ToolsMissingError(expected - found, found - expected, await self._tasks(expected - found))

    async def _tasks(self, missing: Collection[str]) -> str:
        """Return why tools are missing, if that is that the framework leaves out those that may run as tasks."""
        definitions = await self.server.channel.list_tools() if self.server.channel else ()
        tasks = {
            tool["name"] for tool in definitions if tool.get("execution", {}).get("taskSupport", "forbidden") in _TASKS
        }
        if not missing or not tasks.issuperset(missing):
            return ""
        listed = ", ".join(sorted(missing))
        return f"Agent Framework leaves out tools that may run as tasks; give the context `without: [{listed}]`"

    async def close(self) -> None:
        """Disconnect, ending a server's own process; nothing is left running."""
        if self.tool.is_connected:
            await self.tool.close()
        else:
            await self.tool.connection.abort()

    def loss(self, error: BaseException | None = None) -> ServerLostError | None:
        """Say whether the server was lost, by what the tap saw or by the `error` a call raised."""
        if self.server.log is not None and self.server.log.lost is not None:
            return ServerLostError(self.server.log.lost, kind=self.server.log.kind)
        for cause in causes(error):
            match cause:
                case ServerLostError():
                    return cause
                case MCPError(code=code, message=message) if code in _LOST or (code, message) == _HTTP_ERROR:
                    return self._lost(f"was lost during a call: {message}")
                case BrokenResourceError() | ClosedResourceError() | TransportError():
                    return self._lost(f"was lost during a call: {cause!r}")
        return None

    def _lost(self, what: str) -> ServerLostError:
        return ServerLostError(f"MCP server {self.server.name!r} {what}{self._last_words()}")

    def _last_words(self) -> str:
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        said = "".join(self._stderr.readlines()[-_STDERR_LINES:]).strip()
        return f"; its stderr ends:\n{said}" if said else ""


@asynccontextmanager
async def open_sessions(
    servers: Sequence[McpServer], client: Callable[[], AsyncClient], parse: ParseResult
) -> AsyncIterator[Sequence[Session]]:
    """Open a session with every server, and close all however the body ends. Raises as `Session.open` does.

    `parse` reads the results of their tools.
    """
    async with AsyncExitStack() as stack:
        sessions = []
        for server in servers:
            session = _session(server, client, parse, stack)
            stack.push_async_callback(session.close)
            await session.open()
            sessions.append(session)
        yield sessions


def _session(
    server: McpServer, client: Callable[[], AsyncClient], parse: ParseResult, stack: AsyncExitStack
) -> Session:
    if server.transport != "stdio":
        return Session(server, HttpTool(server, parse, None if server.channel is not None else client()))
    file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by the stack
    stderr = stack.enter_context(file)
    return Session(server, StdioTool(server, parse, stderr), stderr)


def _remote_name(function: FunctionTool) -> str:
    properties = function.additional_properties or {}
    return str(properties.get("_mcp_remote_name", function.name))
