"""Translation between an agent that begins with `initialize` and a server of the revision 2026-07-28."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import attrs
from mcp.types import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY

from keval_mcp.passage.passage import Passage

Send: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@attrs.define(eq=False)
class Translation:
    """Says with each request of a session what the agent said once: what it can do, and what it wants to be told.

    What the server needs for its answer the passage asks of the agent, as a server with sessions does.
    """

    passage: Passage
    capabilities: Mapping[str, Any]
    _level: object = attrs.field(default=None, init=False)
    _listening: dict[str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)

    async def result_of(self, method: str, params: Mapping[str, Any], send: Send) -> Mapping[str, Any]:
        """Return the result of an agent's request, which is sent with `send` if it goes to the server.

        Raises:
            MCPError: it is refused.
        """
        uri = str(params.get("uri"))
        subscribes = (self.passage.listing.capabilities.get("resources") or {}).get("subscribe") is True
        match method:
            case "logging/setLevel":
                self._level = params.get("level")
                return {}
            case "resources/subscribe" if subscribes:
                if uri not in self._listening:
                    begun = asyncio.Event()
                    self._listening[uri] = asyncio.create_task(self.passage.listen_to([uri], begun.set))
                    self._listening[uri].add_done_callback(lambda _: begun.set())
                    await begun.wait()
                return {}
            case "resources/unsubscribe" if subscribes:
                self.passage.subscribed.discard(uri)
                if (listening := self._listening.pop(uri, None)) is not None:
                    listening.cancel()
                return {}
        meta = {**(params.get("_meta") or {}), CLIENT_CAPABILITIES_META_KEY: self.capabilities}
        if self._level is not None:
            meta[LOG_LEVEL_META_KEY] = self._level
        return older(await send(method, {**params, "_meta": meta}))

    async def close(self) -> None:
        """End the listening."""
        for listening in self._listening.values():
            listening.cancel()
        await asyncio.gather(*self._listening.values(), return_exceptions=True)


_NEW = ("ttlMs", "cacheScope")


def older(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as the handshake revisions have it, in which structured content is an object."""
    kept = {name: value for name, value in result.items() if name not in _NEW}
    if kept.get("resultType") == "complete":  # an extension that the agent has declared may have others
        del kept["resultType"]
    if not isinstance(kept.get("structuredContent", {}), dict):
        del kept["structuredContent"]
    if isinstance(kept.get("tools"), list | tuple):
        kept["tools"] = [_older(tool) if isinstance(tool, Mapping) else tool for tool in kept["tools"]]
    return kept


def _older(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = tool.get("outputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") == "object":
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}
