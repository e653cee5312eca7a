"""An MCP server with one tool."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")


@server.tool()
def greet(name: str) -> str:
    """Greet somebody by name."""
    return f"{sys.argv[1]}, {name}"


if __name__ == "__main__":
    server.run("stdio")
