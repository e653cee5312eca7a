"""What a server says of itself when it comes up: its tools, its name and its instructions."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property

import attrs
from mcp import Client
from mcp.types import Implementation, Tool

__all__ = ["Listing"]


@attrs.frozen(slots=False)
class Listing:
    """The tools of a server, all pages of them, in its own order."""

    tools: tuple[Tool, ...]
    info: Implementation | None = None
    instructions: str | None = None

    @classmethod
    async def read(cls, client: Client) -> Listing:
        """Ask a connected server. Raises MCPError when it has no tools capability."""
        page = await client.list_tools(cache_mode="bypass")
        tools = list(page.tools)
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor, cache_mode="bypass")
            tools += page.tools
        return cls(tuple(tools), client.server_info, client.instructions)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all names, descriptions and input schemas, whatever their order."""
        definitions = sorted(([tool.name, tool.description, tool.input_schema] for tool in self.tools), key=str)
        text = json.dumps(definitions, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
