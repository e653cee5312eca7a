"""What a server says of itself when it comes up: its tools, its name, its instructions, and what else it can do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from keval_mcp.server.handshake import Session

__all__ = ["Listing"]


@attrs.frozen(slots=False)
class Listing:
    """The tools of a server, all pages of them, in its own order, and what it said when the session began.

    Everything is as the server wrote it, in JSON's types: nothing that a definition holds is lost. `version` is the
    revision of the protocol that it speaks with keval.
    """

    tools: tuple[Mapping[str, Any], ...]
    info: Mapping[str, Any] | None = None
    instructions: str | None = None
    capabilities: Mapping[str, Any] = attrs.field(factory=dict)
    version: str = "2025-11-25"

    @classmethod
    async def read(cls, session: Session) -> Listing:
        """Ask a connected server.

        Raises:
            MCPError: it has no tools.
            ValueError: what it lists is no list of tools.
        """
        tools: list[Mapping[str, Any]] = []
        cursor: Any = None
        while True:
            page = await session.request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools += _tools(page)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        said = session.introduction
        return cls(tuple(tools), said.info, said.instructions, said.capabilities, said.version)

    @classmethod
    def told(cls, kept: Mapping[str, Any]) -> Listing:
        """Return a listing that `as_kept` has written."""
        return cls(**{**kept, "tools": tuple(kept["tools"])})

    def as_kept(self) -> dict[str, Any]:
        """Return the listing in JSON's types, as a recording keeps it."""
        return attrs.asdict(self, recurse=False) | {"tools": [*self.tools]}

    @property
    def begins_sessions(self) -> bool:
        """Whether the server is spoken to in sessions; the revision 2026-07-28 has none."""
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
