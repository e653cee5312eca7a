"""An MCP server that says how it is to be used."""

from __future__ import annotations

import socket

import uvicorn
from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = "Search before you answer.\nName the shelf, {shelf} and all."

server = MCPServer("library", instructions=INSTRUCTIONS, log_level="CRITICAL")


@server.tool(structured_output=False)
def search(words: str) -> str:
    """Find books."""
    return f"{words}: shelf 7"


def listen(listener: socket.socket) -> None:
    """Serve over streamable HTTP."""
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
