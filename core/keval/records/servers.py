"""MCP servers as agents reach them: the way to one, what it offers, and what passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

import attrs
import orjson

from keval.errors import FieldError
from keval.records.transcript import Blob, ServerExchange, ToolCall

Transport: TypeAlias = Literal["stdio", "http", "sse"]


@attrs.define
class CallLog:
    """The calls of one attempt at a trial to one MCP server, as the tap recorded them.

    `calls` are in the order in which they ended, and the `at` of each is Unix time. `lost` says why the server was
    lost, if it was, and `kind` what kind of failure that is. `bystander` says that a call of another trial may have
    been the cause. `exchanges` are what else passed, and `blobs` the content that calls refer to. `contaminated` says
    why the trial proves nothing about its condition, though its server lives: its tools changed. `followed` are the
    names of the tools that were offered after each change, where the trial follows them. `missed` is what the agent
    asked that the recording of a server that is played does not have.
    """

    calls: list[ToolCall] = attrs.field(factory=list)
    lost: str | None = None
    kind: str = "server_lost"
    bystander: bool = False
    exchanges: list[ServerExchange] = attrs.field(factory=list)
    blobs: list[Blob] = attrs.field(factory=list)
    contaminated: str | None = None
    followed: list[tuple[str, ...]] = attrs.field(factory=list)
    missed: str | None = None


class ServerLogin(Protocol):
    """Logs keval in to a server over HTTP. Only the plugin that made it, and connects to the server, looks inside."""

    def learn_with(self, learn: Callable[[Iterable[tuple[str, str]]], None]) -> None:
        """Pass every token to `learn`, with a name, before it is used, so that keval never shows or writes it."""
        ...


class ServerChannel(Protocol):
    """The way to a server for an agent in keval's own process: what the tap serves over HTTP, without HTTP.

    Definitions, arguments and results are as MCP writes them, in JSON's types (`tools/list` and `tools/call`).
    """

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        """Return the definitions of the tools that are offered. Raises ServerLostError."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool once and return its result, with `isError` also where the server refused the call.

        Raises:
            ServerLostError: the server was lost.
        """
        ...

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """Open a session for a client of the MCP SDK: yield what its transports yield, a stream to read and to write.

        Everything of the protocol passes, both ways.
        """
        ...


@attrs.frozen
class ServerAddress:
    """Where an MCP server is: a `url` with `headers`, or with transport `stdio` a `command` to start in `cwd`."""

    name: str
    transport: Transport
    url: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: str | None = None


@attrs.frozen
class McpServer(ServerAddress):
    """How an agent reaches one MCP server in one trial.

    Behind the tap, `transport` is `http`, `url` leads to the tap and `log` records what passes. Without the tap the
    agent connects directly by `url` and `headers`, or starts `command`, and `log` is `None`. `tools` are the names that
    the server listed before the first trial: what the agent must offer its model. `timeout` bounds a call, in seconds.
    `instructions` are the server's, where the agent is to be told them; keval adds them to the system prompt, unless
    the agent's framework does. `channel` leads to the tap for an agent that runs in keval's own process, and `source`
    past the tap and all interventions to the server itself, for what keval asks of it.
    """

    tools: tuple[str, ...] = ()
    timeout: float = 60.0
    log: CallLog | None = None
    instructions: str | None = None
    channel: ServerChannel | None = attrs.field(default=None, eq=False, repr=False)
    source: ServerChannel | None = attrs.field(default=None, eq=False, repr=False)


KEEPS_TRIALS_APART = "it keeps trials apart by itself"
"""Why trials share a server that keeps what it remembers of them apart."""


@attrs.frozen
class Sharing:
    """Whether the trials of a condition share a server, and why.

    `verified` is false where keval cannot know that it keeps trials apart.
    """

    shared: bool
    why: str
    verified: bool = True


@attrs.frozen
class ServerStarts:
    """The processes of a server that came up, and the seconds until each had listed its tools, all together."""

    processes: int = 0
    seconds: float = 0.0


@attrs.frozen
class ToolListing:
    """What a server offers: the names of its tools, and a SHA-256 of their definitions if keval read them.

    `definitions` are the tools as agents get them and `instructions` what they are told of the server, both after
    interventions. `original_digest` is the SHA-256 before these, and `original` and `original_instructions` what the
    server said then; all are `None` if nothing was changed. `unmatched` are the names in interventions that no tool of
    this server has, as an `InterventionError` would tell of them: another server of the context may have them.
    `protocol` is the revision of MCP that keval speaks with it.
    """

    server: str
    tools: tuple[str, ...]
    digest: str | None = None
    definitions: tuple[Mapping[str, Any], ...] = ()
    instructions: str | None = None
    original: tuple[Mapping[str, Any], ...] | None = None
    original_digest: str | None = None
    original_instructions: str | None = None
    unmatched: tuple[FieldError, ...] = ()
    sharing: Sharing | None = None
    protocol: str | None = None


@attrs.frozen
class ContextToolListings:
    """What the servers of one context offer. `type` is its plugin's name.

    `origin` is the label of the context that it derives from in the end, and `interventions` what is changed, first to
    last, as a config writes it.
    """

    label: str
    type: str
    tool_listings: Sequence[ToolListing]
    origin: str | None = None
    interventions: Sequence[Mapping[str, Any]] = ()


@attrs.frozen
class ServerListing:
    """The tools of a server, as `tools/list` of MCP writes them, and its instructions; `None` if it has none."""

    tools: tuple[Mapping[str, Any], ...] = ()
    instructions: str | None = None

    @classmethod
    def offered(cls, tool_listing: ToolListing) -> ServerListing | None:
        """Return what agents get, after all interventions; `None` if keval did not read it."""
        return cls(tool_listing.definitions, tool_listing.instructions) if tool_listing.digest is not None else None

    @classmethod
    def original(cls, tool_listing: ToolListing) -> ServerListing | None:
        """Return what the server said before interventions; `None` if there are none."""
        return None if tool_listing.original is None else cls(tool_listing.original, tool_listing.original_instructions)

    @classmethod
    def parse(cls, content: bytes) -> ServerListing:
        """Read a listing from its blob. Raises ValueError: the content is none."""
        data = orjson.loads(content)
        tools = data.get("tools") if isinstance(data, dict) else None
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise ValueError("a listing is a JSON object with a list of tools")
        return cls(tuple(tools), data.get("instructions"))

    def blob(self, redact: Callable[[bytes], bytes]) -> Blob:
        """Return the listing as a run keeps it; `redact` replaces the secrets in it."""
        written = orjson.dumps({"tools": self.tools, "instructions": self.instructions}, option=orjson.OPT_INDENT_2)
        return Blob.of(redact(written), "application/json")
