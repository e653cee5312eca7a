"""A server of the official SDK, which speaks 2025-11-25 as well as 2026-07-28, over stdio or at `http` on loopback."""

from __future__ import annotations

import socket
from typing import Annotated, Any

import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve
from mcp.types import ListRootsResult, ToolAnnotations
from pydantic import BaseModel

server = MCPServer(
    "dual",
    instructions="Say which revision is spoken.",
    cache_hints={"tools/list": CacheHint(60_000, "public"), "server/discover": CacheHint(1_000, "public")},
)


class Size(BaseModel):
    size: str


def ask_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def ask_folders() -> ListRoots:
    return ListRoots()


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def spoken(ctx: Context[Any, Any]) -> str:
    """Return the revision of MCP that is spoken."""
    return str(ctx.protocol_version)


@server.tool()
def order(size: Annotated[Size, Resolve(ask_size)], folders: Annotated[ListRootsResult, Resolve(ask_folders)]) -> str:
    """Order one in a size that the user chooses, into a folder of the user's."""
    return f"{size.size} into {' '.join(str(root.uri) for root in folders.roots)}"


@server.tool(structured_output=False)
async def work(ctx: Context[Any, Any]) -> str:
    """Work, tell of it, and change a note."""
    await ctx.report_progress(1, 2)
    await ctx.info("working")
    await ctx.notify_resource_updated("note://first")
    return "done"


@server.tool()
def numbers() -> list[int]:
    """Return numbers."""
    return [1, 2]


@server.resource("note://first")
def note() -> str:
    """Return the first note."""
    return "A note."


def listen(listener: socket.socket) -> None:
    """Serve over the network."""
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    server.run("stdio")
