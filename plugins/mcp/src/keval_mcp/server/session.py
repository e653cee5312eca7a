"""A session with a server: how it begins, what every later request carries, and what the server lists and returns.

The handshake revisions (up to 2025-11-25) begin with `initialize`. The revision 2026-07-28 has no session: what a
client is goes with every request. It is spoken with a server that speaks nothing else, or if the config says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any, get_args

import attrs
from mcp import MCPError, types
from mcp.shared import inbound
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import version as revisions

from keval_mcp.server.options import Revision
from keval_mcp.server.streams import UNREADABLE
from keval_mcp.server.transports import forget_refusals, refusals

HANDSHAKES = revisions.HANDSHAKE_PROTOCOL_VERSIONS

_log = logging.getLogger("keval_mcp")

CHANGES = {"toolsListChanged": "tools", "promptsListChanged": "prompts", "resourcesListChanged": "resources"}
"""What `subscriptions/listen` can ask for, and the capability that says so."""


def told_changes(capabilities: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which of `CHANGES` a server with these capabilities tells."""
    return tuple(name for name, listed in CHANGES.items() if (capabilities.get(listed) or {}).get("listChanged"))


@attrs.frozen
class Session:
    """An open session: requests and notifications go out as the revision wants them.

    `introduction` is what the server said when it began, before it listed any tools.
    """

    introduction: Listing
    _dispatcher: JSONRPCDispatcher
    _about: Mapping[str, Any]

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, schema: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result, unchecked and unchanged.

        `schema` is the input schema of the tool that is called, which may ask for arguments in headers, too.

        Raises:
            MCPError: the server refuses it, or the connection has ended.
        """
        params, options = self._stamped(method, params)
        if schema is not None and not self.introduction.begins_sessions:
            arguments = (params or {}).get("arguments") or {}
            headers = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), arguments)
            options["headers"] = {**options["headers"], **headers}
        return _finite(await self._dispatcher.send_raw_request(method, params, options))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; one that cannot be sent any more is dropped."""
        params, options = self._stamped(method, params)
        await self._dispatcher.notify(method, params, options)

    def _stamped(self, method: str, params: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, CallOptions]:
        version = self.introduction.version
        if self.introduction.begins_sessions:
            return params, {"headers": {inbound.MCP_PROTOCOL_VERSION_HEADER: version}}
        return _enveloped(method, params or {}, version, self._about)


async def begin(
    dispatcher: JSONRPCDispatcher,
    about: Mapping[str, Any],
    protocol: str | None = None,
    patience: float | None = None,
) -> Session:
    """Begin a session in the revision `protocol`, as a client that tells `about` itself what `initialize` does.

    `patience` is how many seconds a server is waited for that may not know `server/discover`, as it is asked first.

    Raises:
        MCPError: the server refuses it.
        ValueError: what it answers is no such beginning, or its revision of the protocol is unknown or another one.
    """
    waits = {"newest": patience, "2026-07-28": None}
    shake = partial(_shaken, dispatcher, about)
    discover = partial(_discovered, dispatcher, about, waits.get(protocol or "", _DISCOVERY_SECONDS))
    # The refusal that is told; of the other nothing is.
    telling = discover if protocol == "2026-07-28" else shake
    refused: dict[object, Exception] = {}
    ways = [discover, shake] if protocol in waits else [shake, discover]
    for way in ways:
        # A server that does not know the handshake may speak the revision without sessions; each refuses in its way.
        # What does not speak the revision that is asked for is asked for the other, to tell what it does speak.
        try:
            with nullcontext() if way is telling else refusals():
                introduction = await way()
            break
        except (MCPError, TimeoutError) as error:
            refused[way] = error
            if way is shake and isinstance(refused.get(discover), TimeoutError):
                # It was only slow to start, and does not know the handshake.
                ways.append(partial(_discovered, dispatcher, about, _DISCOVERY_SECONDS))
    else:
        raise refused[telling]
    forget_refusals()
    spoken = introduction.version
    if protocol not in (None, "newest", spoken):
        can = f"write `protocol: {spoken}`, or leave it out" if spoken in get_args(Revision) else "leave `protocol` out"
        raise ValueError(f"it speaks the revision {spoken} of MCP and not {protocol}; {can}")
    session = Session(introduction, dispatcher, about)
    if introduction.begins_sessions:
        await session.notify("notifications/initialized")
    return session


async def _shaken(dispatcher: JSONRPCDispatcher, about: Mapping[str, Any]) -> Listing:
    """Return what a server says of itself in the handshake. Raises as `begin` does."""
    offered = {"protocolVersion": revisions.LATEST_HANDSHAKE_VERSION, **about}
    # MCP forbids a client to cancel `initialize`, and `server/discover` below.
    answer = _finite(await dispatcher.send_raw_request("initialize", offered, {"cancel_on_abandon": False}))
    version = answer.get("protocolVersion")
    if version not in HANDSHAKES:
        raise ValueError(f"it speaks the revision {version!r} of MCP, which is unknown")
    return _introduction(version, answer, answer.get("serverInfo"))


_DISCOVERY_SECONDS = 10.0
"""How long a server that has just refused `initialize` may take to say that it has no sessions."""


async def _discovered(dispatcher: JSONRPCDispatcher, about: Mapping[str, Any], patience: float | None) -> Listing:
    """Return what a server without a handshake says of itself. Raises as `begin` does, and TimeoutError."""

    async def ask(version: str) -> dict[str, Any]:
        params, options = _enveloped("server/discover", {}, version, about)
        return _finite(await dispatcher.send_raw_request("server/discover", params, options))

    async with asyncio.timeout(patience):
        try:
            answer = await ask(revisions.LATEST_MODERN_VERSION)
        except MCPError as refused:
            known = _known(refused.data.get("supported") if isinstance(refused.data, dict) else None)
            if refused.code != types.UNSUPPORTED_PROTOCOL_VERSION or not known:
                raise
            answer = await ask(known[-1])
    spoken = answer.get("supportedVersions")
    versions = _known(spoken)
    # A server may answer so whatever it is asked, or say that it has the handshake alone.
    if not isinstance(spoken, list) or (not versions and any(each in spoken for each in HANDSHAKES)):
        raise MCPError(types.METHOD_NOT_FOUND, "it answers server/discover without a revision that has it")
    if not versions:
        raise ValueError(f"it speaks the revisions {spoken!r} of MCP, which are unknown")
    meta = answer.get("_meta")
    return _introduction(versions[-1], answer, meta.get(types.SERVER_INFO_META_KEY) if isinstance(meta, dict) else None)


def _known(spoken: object) -> list[str]:
    """Return which revisions without sessions that a server names are known, the newest last."""
    return [each for each in revisions.MODERN_PROTOCOL_VERSIONS if isinstance(spoken, list) and each in spoken]


def _introduction(version: str, answer: Mapping[str, Any], info: Any) -> Listing:
    capabilities, instructions = answer.get("capabilities"), answer.get("instructions")
    if not isinstance(capabilities, dict):
        raise ValueError("it begins a session without saying what it can do (capabilities)")
    return Listing(
        (),
        info if isinstance(info, dict) else None,
        instructions if isinstance(instructions, str) else None,
        capabilities,
        version,
        {name: value for name, value in answer.items() if name not in _INTRODUCED + _DISCOVERED},
    )


# What the tap says for the server when it answers `initialize` or `server/discover`.
_INTRODUCED = ("protocolVersion", "serverInfo", "capabilities", "instructions")
_DISCOVERED = ("supportedVersions", "resultType")


def _enveloped(
    method: str, params: Mapping[str, Any], version: str, about: Mapping[str, Any]
) -> tuple[dict[str, Any], CallOptions]:
    """Return a request of the revision without sessions: its parameters, and the headers that HTTP adds."""
    own = params.get("_meta") or {}
    meta = {
        **own,
        types.PROTOCOL_VERSION_META_KEY: version,
        types.CLIENT_INFO_META_KEY: about["clientInfo"],
        # Those of the agent, which `marked` has passed on, and what the context's client answers.
        types.CLIENT_CAPABILITIES_META_KEY: {
            **(own.get(types.CLIENT_CAPABILITIES_META_KEY) or {}),
            **about["capabilities"],
        },
    }
    headers = {inbound.MCP_PROTOCOL_VERSION_HEADER: version, inbound.MCP_METHOD_HEADER: method}
    # The extension io.modelcontextprotocol/tasks adds its methods to those that bear a name.
    name = params.get("taskId" if method.startswith("tasks/") else inbound.NAME_BEARING_METHODS.get(method, ""))
    if isinstance(name, str):
        headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
    return {**params, "_meta": meta}, {"headers": headers, "cancel_on_abandon": method != "server/discover"}


NO_JSON = "NaN or Infinity, which is no JSON"


def is_finite(value: object) -> bool:
    """Return whether a value in JSON's types can be written as JSON, which has no NaN and no Infinity."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _finite(result: dict[str, Any]) -> dict[str, Any]:
    if is_finite(result):
        return result
    raise MCPError(types.PARSE_ERROR, NO_JSON, UNREADABLE)


_MOST_PAGES = 1000
EXTENSION = "io.modelcontextprotocol/skills"
"""By which servers declare that they serve skills."""
_BESIDE_TOOLS = ("resources", "prompts", "completions")


def is_beside_tools(method: str) -> bool:
    """Return whether a request is for what a server has beside tools: resources, prompts, and skills."""
    return method.startswith(("resources/", "prompts/", "completion/", "skills/"))


@attrs.frozen(slots=False)
class Listing:
    """The tools of a server, all pages of them, in its own order, and what it said when the session began.

    Everything is as the server wrote it, in JSON's types: nothing that a definition holds is lost. `version` is the
    revision of the protocol that it speaks with keval, and `more` what else it said, such as the `_meta` of its answer.
    `about` is what it says of the list: how long it may be kept, and `_meta`.
    """

    tools: tuple[Mapping[str, Any], ...]
    info: Mapping[str, Any] | None = None
    instructions: str | None = None
    capabilities: Mapping[str, Any] = attrs.field(factory=dict)
    version: str = "2025-11-25"
    more: Mapping[str, Any] = attrs.field(factory=dict)
    about: Mapping[str, Any] = attrs.field(factory=dict)

    @staticmethod
    async def read(session: Session, capabilities: Mapping[str, Any] | None = None) -> Listing:
        """Ask a connected server; one without sessions is asked as by a client with these `capabilities`, too.

        Raises:
            MCPError: it refuses, although it declares that it has tools.
            ValueError: what it lists is no list of tools, or has no end.
        """
        introduction = session.introduction
        declared = introduction.capabilities.get("tools") is not None
        # Servers written by hand may declare nothing, and have tools.
        if introduction.capabilities and not declared:
            return introduction
        tools: list[Mapping[str, Any]] = []
        about: dict[str, Any] = {}
        cursors: list[Any] = [None]
        while True:
            try:
                asked: dict[str, Any] = {} if cursors[-1] is None else {"cursor": cursors[-1]}
                if capabilities and not introduction.begins_sessions:
                    asked["_meta"] = {types.CLIENT_CAPABILITIES_META_KEY: capabilities}
                page = await session.request("tools/list", asked)
            except MCPError as refused:
                if declared or refused.code != types.METHOD_NOT_FOUND:
                    raise
                return introduction
            tools += _tools(page) if introduction.begins_sessions else _sendable(_tools(page))
            about |= {name: value for name, value in page.items() if name not in ("tools", "nextCursor", "resultType")}
            cursor = page.get("nextCursor")
            if cursor is None:
                return attrs.evolve(introduction, tools=tuple(tools), about=about)
            if cursor in cursors:
                raise ValueError(
                    f"its list of tools has no end: page {len(cursors)} leads on to an earlier one, by"
                    f" nextCursor {cursor!r:.200}; have the server leave that out of its last page"
                )
            if len(cursors) == _MOST_PAGES:
                raise ValueError(
                    f"its list of tools has more than {_MOST_PAGES} pages; have the server list more on each"
                )
            cursors.append(cursor)

    @classmethod
    def told(cls, kept: Mapping[str, Any]) -> Listing:
        """Return a listing that `as_kept` has written."""
        return cls(**{**kept, "tools": tuple(kept["tools"])})

    def as_kept(self) -> dict[str, Any]:
        """Return the listing in JSON's types, as a recording keeps it."""
        return attrs.asdict(self, recurse=False) | {"tools": [*self.tools]}

    @property
    def with_tools_alone(self) -> Listing:
        """The listing of a server that has nothing but tools for agents, neither resources nor prompts."""
        left = {name: each for name, each in self.capabilities.items() if name not in _BESIDE_TOOLS}
        if EXTENSION in (extensions := left.get("extensions") or {}):
            left["extensions"] = {name: each for name, each in extensions.items() if name != EXTENSION}
        return attrs.evolve(self, capabilities=left)

    @property
    def begins_sessions(self) -> bool:
        """Whether the server is spoken to in sessions; the revision 2026-07-28 has none."""
        # Revisions are dates, so they compare as texts.
        return self.version < "2026"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool["name"] for tool in self.tools)

    @cached_property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """The input schemas by tool."""
        return {tool["name"]: tool["inputSchema"] for tool in self.tools}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all names, descriptions and input schemas, whatever their order."""
        definitions = [[tool["name"], tool.get("description"), tool["inputSchema"]] for tool in self.tools]
        # Sorted as texts, because mappings and None have no order.
        text = json.dumps(sorted(definitions, key=str), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _tools(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = page.get("tools")
    if not isinstance(tools, list):
        raise ValueError("it answers tools/list without a list of tools")
    for tool in tools:
        if not (
            isinstance(tool, dict)
            and isinstance(tool.get("name"), str)
            and isinstance(tool.get("inputSchema"), dict)
            and isinstance(tool.get("description"), str | None)
        ):
            raise ValueError(f"it lists what is no tool with a name and an inputSchema: {tool!r:.200}")
    return tools


def _sendable(tools: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tools without those whose arguments could not be sent in headers, as clients of 2026-07-28 must."""
    kept: list[Mapping[str, Any]] = []
    for tool in tools:
        if (problem := inbound.find_invalid_x_mcp_header(tool["inputSchema"])) is None:
            kept.append(tool)
        else:
            _log.warning("the tool %r is left out, as MCP wants it: %s", tool["name"], problem)
    return kept


_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""What each kind of content has at least, as texts; an embedded resource is checked by itself."""


def check_result(result: Mapping[str, Any]) -> None:
    """Raise ValueError if what a server answered is no result of a tool call.

    Content of a kind that a later revision of MCP may have passes.
    """
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ValueError(f"its content is no list: {content!r:.200}")
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise ValueError(f"its content has a block without a type: {block!r:.200}")
        missing = [name for name in _MEMBERS.get(block["type"], ()) if not isinstance(block.get(name), str)]
        if block["type"] == "resource" and not _is_resource(block.get("resource")):
            missing = ["resource"]
        if missing:
            raise ValueError(f"its content has a block of type {block['type']!r} without {', '.join(missing)}")
    if not isinstance(result.get("isError", False), bool):
        raise ValueError(f"its isError is neither true nor false: {result['isError']!r:.200}")


def _is_resource(resource: object) -> bool:
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return False
    return isinstance(resource.get("text", resource.get("blob")), str)


def tool_error(problem: str) -> dict[str, Any]:
    """Return the result of a call that failed with `problem`."""
    return {"content": [{"type": "text", "text": problem}], "isError": True}
