"""One trial's MCP servers, for an adapter that calls the tools itself.

Servers behind the tap are reached in memory, all others by a session of the trial's own. Only for these is the MCP SDK
imported here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from keval.errors import ToolsMissingError
from keval.records.servers import McpServer, ServerChannel
from keval_mcp.tool_results import ToolResult

if TYPE_CHECKING:
    from keval_mcp.server.upstream import DirectChannel


_LONGEST_ALIAS = 64

# What the SDK has to say of a server is in the errors raised here; Python would print it where nobody configured logs.
logging.getLogger("mcp").addHandler(logging.NullHandler())


@attrs.frozen
class Tool:
    """A tool as its server lists it; `input_schema` is a JSON Schema of type object.

    `alias` is the name to offer it to a model under: of letters, digits, `_` and `-`, at most 64 of them, and no other
    tool's. Every model API takes such a name; an MCP server may give any. `read_only` is its `readOnlyHint`.
    """

    server: str
    name: str
    alias: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool = False


@attrs.define(eq=False)
class Sessions:
    """The ways to all servers of a trial; `tools` are theirs, in the servers' own order, when they were read last."""

    _channels: Mapping[str, ServerChannel | DirectChannel] = attrs.field(factory=dict)
    _listed: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(factory=dict)
    tools: tuple[Tool, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tools = tuple(_tools(self._listed))

    async def refresh(self) -> bool:
        """Read the tools again, which takes no request to a server, and return whether they have changed."""
        listed = {name: await channel.list_tools() for name, channel in self._channels.items()}
        if all(tools is self._listed[name] for name, tools in listed.items()):
            return False
        self._listed, self.tools = listed, tuple(_tools(listed))
        return True

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool, once; any number of calls may be under way.

        Raises:
            ServerLostError: its server died or hangs, or an HTTP error came in place of an answer.
        """
        return ToolResult(await self._channels[tool.server].call_tool(tool.name, arguments))


@asynccontextmanager
async def open_sessions(servers: Sequence[McpServer]) -> AsyncIterator[Sessions]:
    """Reach every server and list its tools; all sessions are closed however the body ends.

    Raises:
        ServerLostError: a server does not come up.
        ToolsMissingError: a server does not offer exactly what it listed before the run.
    """
    async with AsyncExitStack() as stack:
        channels: dict[str, ServerChannel | DirectChannel] = {}
        listed: dict[str, tuple[Mapping[str, Any], ...]] = {}
        for server in servers:
            channel = server.channel or await _open(server, stack)
            channels[server.name], listed[server.name] = channel, await channel.list_tools()
            found, expected = {tool["name"] for tool in listed[server.name]}, set(server.tools)
            if found != expected:
                raise ToolsMissingError(expected - found, found - expected)
        yield Sessions(channels, listed)


async def _open(server: McpServer, stack: AsyncExitStack) -> DirectChannel:
    from keval_mcp.server.upstream import direct_channel  # the MCP SDK takes 0.4 s to import

    return await stack.enter_async_context(direct_channel(server))


def _tools(listed: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterable[Tool]:
    taken: set[str] = set()
    for server, definitions in listed.items():
        for definition in definitions:
            name = definition["name"]
            alias = _alias(name, taken)
            taken.add(alias)
            about, hints = definition.get("description") or "", definition.get("annotations") or {}
            read_only = hints.get("readOnlyHint") is True
            yield Tool(server, name, alias, about, definition["inputSchema"], read_only)


def _alias(name: str, taken: set[str]) -> str:
    fitting = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    alias, number = fitting[:_LONGEST_ALIAS], 1
    while alias in taken:
        number += 1
        alias = f"{fitting[: _LONGEST_ALIAS - len(str(number)) - 1]}_{number}"
    return alias
