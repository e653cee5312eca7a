"""Listings: what a server says of itself to agents, as a run keeps it in its `blobs/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from keval.recorder import Blob
from keval.servers import ToolOffer

__all__ = ["ServerListing"]


@attrs.frozen
class ServerListing:
    """The tools of a server, as `tools/list` of MCP writes them, and its instructions; `None` if it has none."""

    tools: tuple[Mapping[str, Any], ...] = ()
    instructions: str | None = None

    @classmethod
    def offered(cls, offer: ToolOffer) -> ServerListing | None:
        """Return what agents get, after all interventions; `None` if keval did not read it."""
        return cls(offer.definitions, offer.instructions) if offer.digest is not None else None

    @classmethod
    def original(cls, offer: ToolOffer) -> ServerListing | None:
        """Return what the server said before interventions; `None` if there are none."""
        return None if offer.original is None else cls(offer.original, offer.original_instructions)

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

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition of a tool, if it is listed."""
        return next((tool for tool in self.tools if tool.get("name") == name), None)
