"""One trial's MCP sessions: the framework's tools, which connect and list once; their arguments and results.

Left alone, the framework reconnects in the middle of a conversation and sends the interrupted call a second time. The
server may have run it already, and a new session has lost the old one's state: neither would show in an answer. It
also lists the tools again when the server says that they changed or a stream of events ends, and reconnects for that.
It declares that it samples for servers, and without a callback that allows it refuses each time; here it does not.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import IO, Any, TextIO, TypeAlias

import attrs
from agent_framework import Content, FunctionTool, MCPStdioTool, MCPStreamableHTTPTool
from anyio import BrokenResourceError, ClosedResourceError
from httpx2 import AsyncClient, TransportError
from mcp import MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

from keval.plugin import ContentKind, McpServer, ServerLostError, ToolsMissingError, Wire
from keval_mcp import Media, ToolResult
from keval_ms.faults import causes, described


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
    """A server over streamable HTTP, or over the older HTTP+SSE, or behind the tap in this process.

    `client` is shared and outlives the tool. For HTTP+SSE the framework has no tool of its own.
    """

    sampling_callback = None  # type: ignore[assignment]  # see the module

    def __init__(self, server: McpServer, parse: ParseResult, client: AsyncClient | None) -> None:
        super().__init__(
            server.name, server.url, http_client=client, static_headers=server.headers, **_options(server, parse)
        )
        self.connection = Connection(server.name)
        self._server = server

    async def load_tools(self) -> None:
        if self.connection.begin_listing(self):
            await super().load_tools()

    def get_mcp_client(self) -> Any:
        self.connection.begin()
        if self._server.channel is not None:
            return self._server.channel.streams()
        if self._server.transport == "http":
            return super().get_mcp_client()
        # Between two calls nothing comes; only the session's own timeout may end the wait for an answer.
        return sse_client(self._server.url or "", dict(self._server.headers), sse_read_timeout=math.inf)


McpTool: TypeAlias = StdioTool | HttpTool


def _options(server: McpServer, parse: ParseResult) -> dict[str, Any]:
    return {
        "load_prompts": False,
        # The framework takes whole seconds.
        "request_timeout": math.ceil(server.timeout),
        "additional_tool_argument_names": LET_THROUGH,
        "parse_tool_results": parse,
    }


LET_THROUGH = (
    *("chat_options", "conversation_id", "options", "response_format"),
    *("session", "thread", "tool_choice", "tools"),
)
"""Arguments that the framework would take for its own, even where a tool declares them, if it were not told of them."""

_KEPT_BACK = frozenset({"_meta", "ctx"})
"""Arguments that it sends to no server in any case."""


def passed_on(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments that the framework passes on: what a tool does not declare is dropped, if not refused."""
    declared = schema.get("properties")
    if declared is None or schema.get("additionalProperties") is False:
        return {name: value for name, value in arguments.items() if name not in _KEPT_BACK}
    allowed = {*declared, *LET_THROUGH} - _KEPT_BACK
    return {name: value for name, value in arguments.items() if name in allowed}


ParseResult: TypeAlias = Callable[[CallToolResult], list[Content]]
"""What the framework calls to read a result."""

_DROPPED = "keval_dropped"

_INPUTS = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp", "application/pdf"})
"""What the Responses API takes in the output of a function: `input_image` and `input_file`."""


def result_parser(wire: Wire) -> ParseResult:
    """Return a function that reads a result as every adapter of keval's does.

    The framework's own reads structured content in place of all else, and hands links and sounds to APIs that refuse
    them. What neither framework nor API has a place for becomes a text that says so, see `dropped_kinds`. On Chat
    Completions that is all media: the framework leaves them out of a tool's message.
    """
    inputs = _INPUTS if wire == "openai-responses" else frozenset()

    def parse(result: CallToolResult) -> list[Content]:
        read = ToolResult(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        return [_content(part, inputs) for part in read.parts] or [Content.from_text("null")]

    return parse


def dropped_kinds(result: object) -> tuple[ContentKind, ...]:
    """Return the kind of each medium in a result that the model is not shown."""
    items: Iterable[Content] = result if isinstance(result, list) else ()
    found = (item.additional_properties.get(_DROPPED) for item in items)
    return tuple(kind for kind in found if kind is not None)


def _content(part: str | Media, inputs: frozenset[str]) -> Content:
    if isinstance(part, str):
        return Content.from_text(part)
    if part.essence not in inputs:
        return Content.from_text(part.stand_in, additional_properties={_DROPPED: part.kind})
    name = (part.uri or "").rpartition("/")[2] or "file.pdf"  # the API wants one for a file
    return Content.from_uri(part.data_url, media_type=part.essence, name=name)


_LOST = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, INVALID_REQUEST, PARSE_ERROR})
"""Codes by which the MCP client says that no answer came. A restarted server refuses an old session as
INVALID_REQUEST."""

_HTTP_ERROR = (INTERNAL_ERROR, "Server returned an error response")
"""What the MCP client makes of an HTTP error without an MCP message in it, such as a 502."""
_CLOSED = (CONNECTION_CLOSED, "Connection closed")

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
        if (log := self.server.log) is not None and log.lost is not None:
            return ServerLostError(log.lost, kind=log.kind)
        for cause in causes(error):
            match cause:
                case ServerLostError():
                    return cause
                # The tap notices a loss first: an error of any other code is the server's own there.
                case MCPError(code=code, message=message) if (code, message) in (_HTTP_ERROR, _CLOSED) or (
                    code in _LOST and log is None
                ):
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
    # A process writes to a file number, which a text in memory does not have.
    file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by the stack
    stderr = stack.enter_context(file)
    return Session(server, StdioTool(server, parse, stderr), stderr)


def _remote_name(function: FunctionTool) -> str:
    properties = function.additional_properties or {}
    # The framework renames tools, and no public attribute has the server's own name.
    return str(properties.get("_mcp_remote_name", function.name))
