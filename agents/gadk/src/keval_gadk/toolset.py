"""One trial's MCP servers as ADK toolsets: ADK's own MCP client, which cannot lose tools or a server unseen.

Left alone, ADK asks the model without the tools that fail to load, tells the model of a dead server as of any failed
call, and starts or connects to a new one for the next call. A trial that goes on like that proves nothing. So a
toolset here notes the loss, keeps to the session it began with, and ends whatever it began.
"""

from __future__ import annotations

import asyncio
import functools
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TextIO

import anyio
import attrs
import httpx2
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.mcp_tool import (
    McpTool,
    McpToolset,
    SseConnectionParams,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.mcp_tool.mcp_session_manager import MCPSessionManager
from google.genai.types import Part
from mcp import MCPError, StdioServerParameters
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

from keval.plugin import ContentKind, McpServer, ServerChannel, ServerLostError, ToolsMissingError
from keval_clients import Network
from keval_mcp import Media, ToolResult

_GONE = (OSError, TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
_GONE_CODES = {CONNECTION_CLOSED, REQUEST_TIMEOUT, PARSE_ERROR, INVALID_REQUEST}
"""Codes by which the MCP client says that no answer came; the last is what a server says to a lost session."""
_HTTP_ERROR = (INTERNAL_ERROR, "Server returned an error response")
"""What the MCP client makes of an HTTP error without an MCP message in it, such as a 502."""
_CLOSED = (CONNECTION_CLOSED, "Connection closed")
_STDERR_TAIL = 2000  # characters

_Connection = StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams


@asynccontextmanager
async def open_toolsets(servers: Iterable[McpServer]) -> AsyncIterator[Sequence[TrialToolset]]:
    """Connect to every server for one trial, and end every session and process on the way out.

    Raises:
        ServerLostError: a server does not come up.
        ToolsMissingError: a server offers other tools than before the first trial.
    """
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(_open_toolset(server)) for server in servers]


@asynccontextmanager
async def _open_toolset(server: McpServer) -> AsyncIterator[TrialToolset]:
    # A server needs a real file to write to, and `a` lets that be read without moving the place where it writes.
    with tempfile.TemporaryFile("a+", encoding="utf-8", errors="replace") as stderr:
        toolset = TrialToolset(server, stderr)
        try:
            await toolset.open()
            yield toolset
        finally:
            await toolset.close()


class TrialToolset(McpToolset):
    """The tools of one MCP server during one trial."""

    def __init__(self, server: McpServer, stderr: TextIO) -> None:
        connection = _connection(server)
        super().__init__(connection_params=connection, errlog=stderr)
        self._sessions = _OneSession(connection_params=connection, errlog=stderr, channel=server.channel)
        # ADK makes a manager of its own, and takes none as an argument.
        self._mcp_session_manager = self._sessions
        self._server = server
        self._stderr = stderr
        self._reason: str | None = None
        self._listed: list[BaseTool] | None = None
        """The tools of the trial, where their list cannot change."""

    @property
    def loss(self) -> ServerLostError | None:
        """The error for a server that must be taken for lost; `None` while it is well."""
        log = self._server.log
        if self._reason is None and log is not None and log.lost is not None:
            return ServerLostError(log.lost, kind=log.kind)
        return None if self._reason is None else ServerLostError(self._reason)

    @property
    def is_tapped(self) -> bool:
        """Whether the server is behind the tap, which notices a loss first: errors of any code are its own there."""
        return self._server.log is not None

    async def open(self) -> None:
        """Connect and list the tools."""
        try:
            tools = await self.get_tools()
            may_change = await self._may_change()
        except ConnectionError as error:
            raise (self.loss or ServerLostError(str(error))) from error
        self._sessions.sealed = True
        listed, expected = {tool.name for tool in tools}, set(self._server.tools)
        if listed != expected:
            raise ToolsMissingError(expected - listed, listed - expected)
        self._listed = None if may_change else tools

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """List the tools, as ADK does in every turn of the user; it would go on without them if this fails.

        Behind the tap they are listed once a trial, unless the server may announce that they have changed.
        """
        if self._listed is not None:
            return [*self._listed]
        try:
            listed = await super().get_tools(readonly_context)
        except ConnectionError as error:
            self.lose(error)
            raise
        return [_WatchedTool(tool, self, self._sessions) for tool in listed if isinstance(tool, McpTool)]

    async def _may_change(self) -> bool:
        """Return whether the list may be another one later: the tap keeps it, unless the server announces changes."""
        if not self.is_tapped:
            return True
        session = await self._sessions.create_session()  # the one that is open
        offered = session.server_capabilities
        return offered is None or offered.tools is None or bool(offered.tools.list_changed)

    def lose(self, error: Exception) -> None:
        """Note that the server is gone; the first reason stands."""
        if self._reason is None:
            self._stderr.seek(0)
            wrote = self._stderr.read().strip()[-_STDERR_TAIL:]
            self._reason = f"MCP server {self._server.name!r} was lost: {error}" + (
                f"; it wrote: {wrote}" if wrote else ""
            )


class _WatchedTool(McpTool):
    """An MCP tool that tells its toolset when a call found the server gone; ADK tells only the model."""

    def __init__(self, tool: McpTool, toolset: TrialToolset, sessions: MCPSessionManager) -> None:
        super().__init__(mcp_tool=tool.raw_mcp_tool, mcp_session_manager=sessions)
        self._toolset = toolset

    async def _run_async_impl(self, **call: Any) -> dict[str, Any]:
        try:
            return await super()._run_async_impl(**call)
        except _GONE as error:
            self._toolset.lose(error)
            raise
        except MCPError as error:
            told = (error.code, error.message) in (_HTTP_ERROR, _CLOSED)
            if told or (error.code in _GONE_CODES and not self._toolset.is_tapped):
                self._toolset.lose(error)
            raise


class _OneSession(MCPSessionManager):
    """Connects as ADK does, but once: `sealed` after that, it refuses to go on with another session.

    It knows the task in which ADK owns the session, since ADK forgets it when a trial is cancelled while connecting.
    """

    def __init__(self, *, connection_params: _Connection, errlog: TextIO, channel: ServerChannel | None) -> None:
        super().__init__(connection_params=connection_params, errlog=errlog)
        self.sealed = False
        self._channel = channel
        self._owners: list[asyncio.Task[Any]] = []

    def _create_client(self, *args: Any, **kwargs: Any) -> AbstractAsyncContextManager[Any]:
        if self.sealed:
            raise ConnectionError("its session ended, and a trial does not go on with another")
        if self._channel is not None:  # the tap is in this process, which saves the way over HTTP
            return self._owned(self._channel.streams())
        return self._owned(super()._create_client(*args, **kwargs))

    @asynccontextmanager
    async def _owned(self, client: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        owner = asyncio.current_task()
        assert owner is not None  # noqa: S101 -- for mypy: a coroutine always runs in a task
        self._owners.append(owner)
        async with client as streams:
            yield streams

    async def _get_mtls_transport(self) -> Any:
        # ADK looks for Google credentials before it connects to any server, which takes seconds where there are none.
        if "GOOGLE_API_USE_CLIENT_CERTIFICATE" in os.environ:
            return await super()._get_mtls_transport()
        return None

    async def close(self) -> None:
        try:
            await super().close()  # type: ignore[no-untyped-call]
        finally:
            running = [owner for owner in self._owners if not owner.done()]
            for owner in running:
                owner.cancel()
            if running:
                await asyncio.wait(running)


def _connection(server: McpServer) -> _Connection:
    if server.transport == "stdio":
        command = StdioServerParameters(
            command=server.command or "", args=list(server.args), env=dict(server.env), cwd=server.cwd
        )
        # ADK takes this timeout for connecting and for each call; its default of 5 s fails what is merely slow.
        return StdioConnectionParams(server_params=command, timeout=server.timeout)
    remote = StreamableHTTPConnectionParams if server.transport == "http" else SseConnectionParams
    return remote(
        url=server.url or "",
        headers=dict(server.headers),
        timeout=server.timeout,
        sse_read_timeout=server.timeout,
        httpx_client_factory=functools.partial(_http_client, network=Network.to(server.url or "")),
    )


def _http_client(
    headers: dict[str, str] | None = None, timeout: Any = None, auth: Any = None, *, network: Network
) -> Any:
    """Return the client that ADK would make, but with the network's settings that keval has checked and loaded once.

    Untyped, because ADK declares httpx here and runs with httpx2, which MCP's client needs.
    """
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, **network.client)


@attrs.frozen
class ResultForm:
    """What ADK can say of a tool's result over one wire: the `media` types that it passes on as such.

    With `texts_only` it passes on the texts of a result and nothing else of its JSON.
    """

    media: frozenset[str] = frozenset()
    texts_only: bool = False

    def shape(self, response: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[ContentKind, ...]]:
        """Return a result with its media as ADK's parts, and the kinds of those that the model is not shown.

        ADK makes a part in a result what the model's API calls the medium, but hands on MCP's own blocks as JSON, with
        their base64 as text.
        """
        blocks = response.get("content")
        if not isinstance(blocks, list):
            return dict(response), ()
        parts = ToolResult(response).parts
        own = [*blocks, *({} for _ in parts[len(blocks) :])] if self.texts_only else blocks
        # Not strict: structured content may follow as a further part, which the response keeps beside its blocks.
        content = [self._shown(block, part) for block, part in zip(own, parts, strict=False)]
        dropped = tuple(part.kind for part in parts if isinstance(part, Media) and part.essence not in self.media)
        if self.texts_only:
            return {"content": content, **({"isError": True} if response.get("isError") else {})}, dropped
        return {**response, "content": content}, dropped

    def _shown(self, block: Any, part: str | Media) -> Any:
        if isinstance(part, str):
            return _text(part) if self.texts_only else block
        if part.essence in self.media:
            return Part.from_bytes(data=part.content, mime_type=part.essence)
        return _text(part.stand_in)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
