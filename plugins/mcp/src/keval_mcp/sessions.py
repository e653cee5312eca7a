"""One trial's MCP sessions, for an adapter that calls the tools itself.

Neither this module nor a trial without servers imports the MCP SDK.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from keval.plugin import CallLog, McpServer, ServerLostError, ToolsMissingError

if TYPE_CHECKING:
    from keval_mcp.upstream import Upstream

__all__ = ["Outcome", "Sessions", "Tool", "open_sessions"]

_LONGEST_ALIAS = 64

# What the SDK has to say of a server is in the errors raised here; Python would print it where nobody configured logs.
logging.getLogger("mcp").addHandler(logging.NullHandler())


@attrs.frozen
class Tool:
    """A tool as its server lists it; `input_schema` is a JSON Schema of type object.

    `alias` is the name to offer it to a model under: of letters, digits, `_` and `-`, at most 64 of them, and no other
    tool's. Every model API takes such a name; an MCP server may give any.
    """

    server: str
    name: str
    alias: str
    description: str
    input_schema: Mapping[str, Any]


@attrs.frozen
class Outcome:
    """What a tool answered, as text; with `is_error` the server says that the call failed."""

    text: str
    is_error: bool = False


@attrs.frozen(eq=False)
class Sessions:
    """Open sessions with all servers of a trial; `tools` are theirs, in the servers' own order."""

    tools: tuple[Tool, ...] = ()
    _upstreams: Mapping[str, Upstream] = attrs.field(factory=dict)
    _logs: Mapping[str, CallLog | None] = attrs.field(factory=dict)

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
        """Call a tool, once; any number of calls may be under way.

        Raises:
            ServerLostError: its server died, did not answer in time, or an HTTP error came in place of an answer.
        """
        from mcp import MCPError  # imported by now

        from keval_mcp.results import result_text

        upstream = self._upstreams[tool.server]
        try:
            result = await upstream.call(tool.name, arguments, {})
        except MCPError as refused:
            outcome = Outcome(refused.message, is_error=True)
        except ValueError as invalid:
            outcome = Outcome(f"what came is not the result of a tool call: {invalid}", is_error=True)
        else:
            outcome = Outcome(result_text(result), result.is_error)
        log = self._logs[tool.server]
        if log is not None and log.lost is not None:  # the tap answers with a tool error then
            raise ServerLostError(log.lost, kind=log.kind)
        return outcome


@asynccontextmanager
async def open_sessions(servers: Sequence[McpServer]) -> AsyncIterator[Sessions]:
    """Open a session with every server and list its tools; all are closed however the body ends.

    Raises:
        ServerLostError: a server does not come up.
        ToolsMissingError: a server does not offer exactly what it listed before the run.
    """
    if not servers:
        yield Sessions()
        return
    from keval_mcp.upstream import Upstream  # the MCP SDK takes 0.4 s to import

    async with AsyncExitStack() as stack:
        upstreams: dict[str, Upstream] = {}
        for server in servers:
            upstream = await Upstream.connect(server, server.timeout)
            stack.push_async_callback(upstream.close)
            upstreams[server.name] = upstream
            found, expected = set(upstream.listing.names), set(server.tools)
            if found != expected:
                raise ToolsMissingError(expected - found, found - expected)
        yield Sessions(tuple(_tools(upstreams)), upstreams, {server.name: server.log for server in servers})


def _tools(upstreams: Mapping[str, Upstream]) -> Iterable[Tool]:
    taken: set[str] = set()
    for server, upstream in upstreams.items():
        for listed in upstream.listing.tools:
            alias = _alias(listed.name, taken)
            taken.add(alias)
            yield Tool(server, listed.name, alias, listed.description or "", listed.input_schema)


def _alias(name: str, taken: set[str]) -> str:
    fitting = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    alias, number = fitting[:_LONGEST_ALIAS], 1
    while alias in taken:
        number += 1
        alias = f"{fitting[: _LONGEST_ALIAS - len(str(number)) - 1]}_{number}"
    return alias
