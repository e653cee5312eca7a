"""What the tap answers an agent: the handshake and the list of tools itself, and all else with the server's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_INFO_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from keval_mcp.passage.passage import Passage
from keval_mcp.server.listing import Listing
from keval_mcp.tap.messages import answered, refused

__all__ = ["needs_session", "plain_answer", "result_of"]


def needs_session(passage: Passage, capabilities: Mapping[str, Any]) -> bool:
    """Return whether an agent with these capabilities needs a session with the tap, in which the server can speak.

    Lists of tools, prompts and resources are answered without one.
    """
    listed = ("tools", "prompts", "resources")
    offered = passage.listing.capabilities
    if not passage.listing.begins_sessions:
        return False
    if any(name not in (*listed, "experimental") for name in offered):
        return True
    if any(offered.get(name, {}).get(aspect) for name in listed for aspect in ("listChanged", "subscribe")):
        return True
    return passage.own and any(capabilities.get(name) is not None for name in ("sampling", "elicitation", "roots"))


async def plain_answer(passage: Passage, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the message that answers a request without a session; `None` if there is nothing to answer."""
    number, method = message.get("id"), message.get("method")
    if not isinstance(method, str) or number is None:
        return None
    try:
        return answered(number, await result_of(passage, method, message.get("params", {})))
    except MCPError as error:
        return refused(number, error)


async def result_of(
    passage: Passage,
    method: str,
    params: Mapping[str, Any],
    progressed: Callable[[Mapping[str, Any]], object] | None = None,
) -> Mapping[str, Any]:
    """Return the result of an agent's request; `progressed` gets each notification of its progress.

    Raises:
        MCPError: the server refuses it, or the tap does.
    """
    match method:
        case "tools/call":
            if not isinstance(params.get("name"), str) or not isinstance(params.get("arguments"), dict | None):
                raise MCPError(INVALID_PARAMS, "a call has a name, and arguments that are an object")
            return await passage.forward(params, progressed)
        case "tools/list":
            tools = {"tools": await passage.list_tools()}
            return tools if passage.listing.begins_sessions else {"resultType": "complete", **tools, **_UNCACHED}
        case "ping":
            return {}
        case "initialize":
            return _introduction(passage, params.get("protocolVersion"))
        case "server/discover":
            return _discovered(passage.listing)
    return await passage.request(method, params, progressed)


_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}


def _introduction(passage: Passage, asked: object) -> dict[str, Any]:
    """Return the result of `initialize`, in the revision that client and server both speak."""
    listing = passage.listing
    if not listing.begins_sessions:
        data = {"supported": [listing.version], "requested": str(asked)}
        raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, f"the server speaks {listing.version} alone", data)
    known, version = HANDSHAKE_PROTOCOL_VERSIONS, listing.version
    if asked in known and known.index(str(asked)) < known.index(version):
        version = str(asked)
    info = listing.info or {"name": passage.name, "version": ""}
    introduction = {"protocolVersion": version, "capabilities": listing.capabilities, "serverInfo": info}
    return introduction if listing.instructions is None else {**introduction, "instructions": listing.instructions}


def _discovered(listing: Listing) -> dict[str, Any]:
    """Return the result of `server/discover`; servers with a handshake are spoken to by that."""
    if listing.begins_sessions:
        raise MCPError(METHOD_NOT_FOUND, "Method not found: server/discover")
    found = {
        "resultType": "complete",
        "supportedVersions": [listing.version],
        "capabilities": listing.capabilities,
        "_meta": {SERVER_INFO_META_KEY: listing.info},
        **_UNCACHED,
    }
    return found if listing.instructions is None else {**found, "instructions": listing.instructions}
